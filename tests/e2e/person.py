"""What a person does in the browser, in the words of the pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect

from .stack import PASSWORD

SLOW = 120_000  # milliseconds; only ends a test that would hang


class Person:
    """A person at `page`, on the site at `url`."""

    def __init__(self, page: Page, url: str):
        self.page, self.url = page, url
        page.set_default_timeout(SLOW)

    def at(self, name: str) -> Any:
        return self.page.get_by_test_id(name)

    def log_in(self) -> None:
        self.page.goto(self.url)
        self.page.get_by_label("User name").fill("admin")
        self.page.get_by_label("Password").fill(PASSWORD)
        self.page.get_by_role("button", name="Log in").click()
        expect(self.at("new-run").first).to_be_visible(timeout=SLOW)

    def create_run(self, name: str, preset: str, model: str, cluster: str, dataset: str, **fields: str) -> int:
        """Fill in the form, look at what will happen, launch; return the run's id."""
        self.page.goto(f"{self.url}/runs/new/")
        self.at("preset").select_option(preset)
        self.page.locator("#load-preset").click()
        self.at("name").fill(name)
        for test_id, label in (("model", model), ("cluster", cluster), ("dataset", dataset)):
            option = self.at(test_id).locator("option", has_text=label).first
            self.at(test_id).select_option(option.get_attribute("value"))
        for key, value in fields.items():
            self.page.locator(f'[name="{key}"]:visible').fill(value)
        expect(self.at("panel")).to_contain_text("training start", timeout=SLOW)  # the exact command, beforehand
        self.at("launch").click()
        self.page.wait_for_url("**/runs/*/", timeout=SLOW)
        return int(self.page.url.rstrip("/").rpartition("/")[2])

    def open_run(self, run: int) -> None:
        self.page.goto(f"{self.url}/runs/{run}/")

    def drawn(self, series: str = "loss") -> float:
        """Return the last x of the series that the chart has drawn; -1 where it has drawn none."""
        found = self.page.evaluate("name => window.shardboard?.drawn?.[name] ?? -1", series)
        return float(found)

    def wait_drawn(self, step: int, series: str = "loss") -> None:
        """Wait until the chart has drawn `step`; a run that failed meanwhile fails the test with its reason."""
        ask = """([name, step]) => (window.shardboard?.drawn?.[name] ?? -1) >= step
            || document.querySelector('[data-testid="state"]').innerText.includes('failed')"""
        self.page.wait_for_function(ask, arg=[series, step], timeout=SLOW * 2)
        assert self.drawn(series) >= step, self.at("reason").inner_text()

    def see_state(self, state: str) -> None:
        """Wait until the page shows `state`; a run that failed meanwhile fails the test with its reason."""
        ask = """state => [state, 'failed'].some(word =>
            document.querySelector('[data-testid="state"]').innerText.includes(word))"""
        self.page.wait_for_function(ask, arg=state, timeout=SLOW * 3)
        assert state in self.at("state").inner_text(), self.at("reason").inner_text()

    def stop(self) -> None:
        self.at("stop").click()
        self.at("stop-confirm").click()

    def resume(self) -> None:
        self.at("resume").click()

    def export(self, dtype: str) -> None:
        self.at("export").click()
        self.at("export-dtype").select_option(dtype)
        self.at("export-confirm").click()
        expect(self.at("export-state").first).to_contain_text("ready", timeout=SLOW * 3)

    def download(self, folder: Path) -> Path:
        with self.page.expect_download(timeout=SLOW) as waiting:
            self.at("download").first.click()
        path = folder / "model.tar"
        waiting.value.save_as(path)
        return path
