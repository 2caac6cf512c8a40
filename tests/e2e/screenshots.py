"""The pictures in docs/images, of a started service with real runs: python -m tests.e2e.screenshots [--state FOLDER]

A state folder is kept and taken up again, so that a second time the runs are there already.
--preset names what the run in the picture is made of; `tiny` is quick, `smollm2-135m-demo` takes minutes.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import Browser, Page, StorageState

from .browser import chromium
from .person import Person
from .stack import ROOT, Stack, until

IMAGES = ROOT / "docs" / "images"
PATIENCE = 1800  # seconds
MODELS = {"tiny": "tiny-llama-5M", "smollm2-135m-demo": "SmolLM2-135M-Instruct"}
RECIPES = {"tiny": {"optimisation": {"max_steps": 60}, "checkpoints": {"every_steps": 20}}}


@dataclass(frozen=True)
class Picture:
    """`width` and `height` in CSS pixels; a phone has two real ones for each."""

    name: str
    path: str
    width: int = 1280
    height: int = 900
    scheme: Literal["light", "dark"] = "light"

    @property
    def scale(self) -> int:
        return 2 if self.width < 600 else 1


AT_WORK = [Picture("runs", "/", height=400), Picture("nodes", "/fleet/nodes/", height=580)]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.screenshots", description="Make docs/images.")
    parser.add_argument("--state", type=Path, help="state folder of the service, kept; default: a new one, removed")
    parser.add_argument("--preset", choices=MODELS, default="tiny")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="shardboard-pictures-") as new:
        stack = Stack((options.state or Path(new)).resolve())
        try:
            stack.start()
            run = finished_run(stack, options.preset)
            take_all(stack, of_a_run(run))
            with training(stack):
                take_all(stack, AT_WORK)
        finally:
            stack.stop()
    return 0


def of_a_run(run: int) -> list[Picture]:
    return [
        Picture("run-light", f"/runs/{run}/", height=1000),
        Picture("run-dark", f"/runs/{run}/", height=1000, scheme="dark"),
        Picture("run-phone", f"/runs/{run}/", width=390, height=844),
        Picture("new-run", f"/runs/new/?from={run}", height=1100),
    ]


def finished_run(stack: Stack, preset: str) -> int:
    """Return the newest run of `preset` that has succeeded and been exported; make one where there is none."""
    runs = stack.api("GET", "/runs?state=succeeded&limit=200")["items"]
    found = next((found["id"] for found in runs if found["preset"] == preset), None)
    run = found or launch(stack, preset, f"{MODELS[preset]} on code chat", RECIPES.get(preset, {}))
    detail = stack.wait_for_state(run, "succeeded", limit=PATIENCE)
    if not detail["exports"]:
        export(stack, run)
    return int(run)


def launch(stack: Stack, preset: str, name: str, recipe: dict[str, Any]) -> int:
    order = {
        "name": name, "preset": preset, "recipe": recipe, "model": MODELS[preset], "dataset": "code-chat",
        "cluster": "demo", "launch": True,
    }  # fmt: skip
    return int(stack.api("POST", "/runs", order)["id"])


@contextmanager
def training(stack: Stack) -> Iterator[None]:
    """A run that is at work meanwhile; stopped afterwards."""
    run = launch(stack, "tiny", "Tiny, until somebody stops it", {"optimisation": {"max_steps": 5000}})
    until("a few steps", lambda: stack.run(run)["step"] >= 10)
    yield
    stack.api("POST", f"/runs/{run}/stop")
    stack.wait_for_state(run, "stopped")


def export(stack: Stack, run: int) -> None:
    made = stack.api("POST", f"/runs/{run}/exports", {"dtype": "bfloat16"})

    def ended() -> dict[str, Any] | None:
        seen: dict[str, Any] = stack.api("GET", f"/exports/{made['id']}")
        return seen if seen["state"] in ("ready", "failed") else None

    assert until("the export", ended, limit=PATIENCE)["state"] == "ready"


def take_all(stack: Stack, wanted: list[Picture]) -> None:
    IMAGES.mkdir(parents=True, exist_ok=True)
    with chromium() as browser:
        session = logged_in(browser, stack.url)
        for picture in wanted:
            take(browser, session, stack.url, picture)
            print(IMAGES / f"{picture.name}.png", flush=True)


def logged_in(browser: Browser, url: str) -> StorageState:
    context = browser.new_context()
    Person(context.new_page(), url).log_in()
    state = context.storage_state()
    context.close()
    return state


def take(browser: Browser, session: StorageState, url: str, picture: Picture) -> None:
    context = browser.new_context(
        storage_state=session, viewport={"width": picture.width, "height": picture.height}, locale="en-GB",
        color_scheme=picture.scheme, device_scale_factor=picture.scale,
    )  # fmt: skip
    page = context.new_page()
    page.goto(url + picture.path)
    settle(page)
    page.screenshot(path=IMAGES / f"{picture.name}.png", animations="disabled")
    context.close()


def settle(page: Page) -> None:
    """Return when nothing is on its way any more; of charts, when they have drawn."""
    page.wait_for_load_state("networkidle")
    if page.locator('[data-chart="loss"]').count():
        page.wait_for_function("() => window.shardboard?.drawn?.loss > 0")


if __name__ == "__main__":
    sys.exit(main())
