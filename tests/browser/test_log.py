"""The log of a run page, and a page that was away for so long that it reads itself anew."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from .site import Site

pytestmark = pytest.mark.browser
LINES = "() => [...document.querySelectorAll('.log-row')].map((row) => row.textContent.split(' │ ')[1])"
HIDE = """hidden => {
  Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });
  document.dispatchEvent(new Event('visibilitychange'));
}"""  # what a browser without a window can't do

SOON = "const late = setTimeout; window.setTimeout = (then, ms) => late(then, ms === 30000 ? 0 : ms);"


def lines(page: Page) -> list[str]:
    found: list[str] = page.evaluate(LINES)
    return found


def texts(first: int, last: int) -> list[str]:
    return [f"line {i}" for i in range(first, last)]


def opened(page: Page, site: Site, run: int) -> Any:
    """Return the log of the run's page, once its link is live."""
    page.goto(f"{site.url}/runs/{run}/")
    expect(page.get_by_test_id("link")).to_contain_text("live")
    return page.get_by_test_id("log")


def test_a_long_log_is_read_back_and_its_end_followed(site: Site, page: Page) -> None:
    run = site.do("running", name="a long log")
    site.do("log", run=run, texts=texts(0, 1500))
    log = opened(page, site, run)
    rows = log.locator(".log-row")
    site.do("log", run=run, texts=texts(1500, 1501))
    expect(log).to_contain_text("line 1500")
    assert lines(page) == texts(1300, 1501), "the page has the end, and grows"
    log.press("PageUp")
    expect(page.get_by_label("follow")).not_to_be_checked()
    site.do("log", run=run, texts=texts(1501, 1503))
    expect(page.get_by_test_id("log-new")).to_have_text("2 new lines ↓")
    for first in (1100, 900, 700, 500):
        log.evaluate("log => { log.scrollTop = 0; }")
        expect(rows.first).to_have_text(f"alpha │ line {first}")
    assert lines(page) == texts(500, 1500), "a thousand are left where a page of it is read"
    site.do("log", run=run, texts=texts(1503, 1604))
    expect(page.get_by_test_id("log-new")).to_have_text("103 new lines ↓")
    log.evaluate("log => { log.scrollTop = log.scrollHeight; }")
    expect(rows.last).to_have_text("alpha │ line 1603")
    assert lines(page) == texts(604, 1604), "without a hole where it was cut"
    page.get_by_label("Only lines with this text").fill("LINE 77")
    expect(rows).to_have_count(11)
    assert lines(page)[:2] == ["line 77", "line 770"]
    site.do("log", run=run, texts=["another", "line 77 again"])
    expect(log).to_contain_text("line 77 again")
    assert "another" not in lines(page)


def test_a_search_that_was_not_answered_is_asked_again(site: Site, page: Page) -> None:
    run = site.do("running", name="a search")
    site.do("log", run=run, texts=texts(0, 30))
    log = opened(page, site, run)
    refused: list[Route] = []

    def refuse_once(route: Route) -> None:
        if refused:
            route.continue_()
        else:
            refused.append(route)
            route.abort()

    page.route("**/log.json*", refuse_once)
    page.get_by_label("Only lines with this text").fill("line 2")
    site.do("log", run=run, texts=["another", "line 2 again"])
    expect(log.locator(".log-row")).to_have_count(12)
    assert lines(page) == ["line 2", *texts(20, 30), "line 2 again"]


def test_a_page_that_nobody_saw_for_long_reads_itself_anew(site: Site, page: Page) -> None:
    page.add_init_script(SOON)
    run = site.do("running", name="unseen")
    with page.expect_websocket() as socket:
        log = opened(page, site, run)
    with socket.value.expect_event("close"):
        page.evaluate(HIDE, True)
    expect(page.get_by_test_id("stale")).to_be_hidden()
    site.do("metrics", run=run, losses=[2.0] * 2100)
    site.do("log", run=run, texts=texts(0, 300))
    site.do("end", run=run, state="succeeded", reason="completed")
    assert page.evaluate("window.shardboard.drawn.loss") is None, "a hidden page draws nothing"
    page.evaluate(HIDE, False)
    expect(page.get_by_test_id("state")).to_contain_text("succeeded")
    expect(log).to_contain_text("line 299")
    page.wait_for_function("() => window.shardboard.drawn.loss === 2100")
    assert lines(page) == texts(100, 300)
