"""The live view at its limits, cases V of the field: bursts, a lost network, values that are not finite, attempts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.relay import Relay

from .site import Site

pytestmark = pytest.mark.browser
STEP = "name => window.shardboard?.drawn?.[name] ?? -1"
PHONE = {"width": 390, "height": 844}


def opened(page: Page, site: Site, run: int, url: str = "") -> Page:
    """Return the page once its link is live."""
    page.goto(f"{url or site.url}/runs/{run}/")
    expect(page.get_by_test_id("link")).to_contain_text("live")
    return page


def wait_drawn(page: Page, step: int) -> None:
    page.wait_for_function("step => (window.shardboard?.drawn?.loss ?? -1) >= step", arg=step)


def points(page: Page) -> list[list[float | str]]:
    found: list[list[float | str]] = page.evaluate("window.shardboard.points('loss')")
    return found


def falling(count: int) -> list[float]:
    return [3.0 - i / count for i in range(count)]


@pytest.fixture
def run(site: Site, request: pytest.FixtureRequest) -> int:
    found: int = site.do("running", name=request.node.name)
    return found


def test_a_burst_is_drawn_whole_by_a_slow_browser(site: Site, page: Page, run: int) -> None:
    page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": 6})
    opened(page, site, run)
    site.do("metrics", run=run, losses=falling(200))
    wait_drawn(page, 200)
    assert points(page) == [[i, loss] for i, loss in enumerate(falling(200), 1)]


@pytest.fixture
def relay(site: Site) -> Iterator[Relay]:
    made = Relay(urlsplit(site.url).port or 0)
    yield made
    made.cut()


def test_a_network_that_was_gone_leaves_no_hole(site: Site, browser: Browser, run: int, relay: Relay) -> None:
    context = site.visit(browser)
    page = opened(context.new_page(), site, run, relay.url)
    site.do("metrics", run=run, losses=falling(20))
    wait_drawn(page, 20)
    relay.cut()
    expect(page.get_by_test_id("stale")).to_contain_text("the service does not answer")
    site.do("metrics", run=run, losses=falling(60), after=20)
    site.do("log", run=run, texts=["said meanwhile"])
    assert page.evaluate(STEP, "loss") == 20, "what the badge says is true"
    relay.mend()
    wait_drawn(page, 80)
    expect(page.get_by_test_id("stale")).to_be_hidden()
    expect(page.get_by_test_id("log")).to_contain_text("said meanwhile")
    fresh = opened(context.new_page(), site, run)
    wait_drawn(fresh, 80)
    assert points(page) == points(fresh)
    assert len(points(page)) == 80
    context.close()


def test_what_is_not_finite_is_a_gap_with_its_name(site: Site, page: Page, run: int) -> None:
    opened(page, site, run)
    site.do("metrics", run=run, losses=[1.2, float("nan"), float("inf"), 0.9])
    wait_drawn(page, 4)
    assert points(page) == [[1, 1.2], [2, "NaN"], [3, "Infinity"], [4, 0.9]]
    strict = page.request.get(f"{site.url}/runs/{run}/series.json").text()
    json.loads(strict, parse_constant=pytest.fail)
    saved = page.request.get(f"{site.url}/runs/{run}/series.csv?name=loss").text()
    assert [line.rpartition(",")[2] for line in saved.split()[1:]] == ["1.2", "NaN", "Infinity", "0.9"]
    odd = site.do("running", name="what is not finite comes last")
    site.do("metrics", run=odd, losses=[0.1, float("nan")])
    page.goto(f"{site.url}/runs/?sort=loss&q=what")
    rows = page.get_by_test_id("run-row")
    assert [row.get_attribute("data-run") for row in rows.all()] == [str(run), str(odd)]
    expect(rows.nth(1)).to_contain_text("NaN")


def test_a_newer_attempt_wins_and_the_old_tail_stays(site: Site, page: Page, run: int) -> None:
    site.do("metrics", run=run, losses=[2.0] * 200)
    site.do("checkpoint", run=run, step=200)
    site.do("metrics", run=run, losses=[2.0] * 10, after=200)
    site.do("fail", run=run)
    site.do("resume", run=run)
    opened(page, site, run)
    site.do("metrics", run=run, losses=[1.0] * 100, after=200)
    wait_drawn(page, 300)
    site.do("late", run=run, losses=[2.0, 2.0], after=210)
    page.wait_for_function("() => document.querySelector('[data-chart=loss]').textContent.includes('left behind')")
    assert points(page) == [[i, 2.0 if i <= 200 else 1.0] for i in range(1, 301)]
    told = page.request.get(f"{site.url}/runs/{run}/series.json?points=1500").json()["series"]["loss"]
    assert [x for x, _ in told["tail"]] == list(range(201, 213))


def test_a_closed_tab_is_opened_again_on_a_phone(site: Site, browser: Browser, page: Page, run: int) -> None:
    opened(page, site, run)
    site.do("metrics", run=run, losses=falling(10))
    wait_drawn(page, 10)
    page.close()
    site.do("metrics", run=run, losses=falling(10), after=10)
    assert site.do("state", run=run) == "running"
    context = site.visit(browser, viewport=PHONE, is_mobile=True, has_touch=True)
    phone = opened(context.new_page(), site, run)
    wait_drawn(phone, 20)
    expect(phone.get_by_test_id("state")).to_be_in_viewport()
    expect(phone.get_by_test_id("stop")).to_be_in_viewport()
    assert phone.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing has to be scrolled sideways"
    context.close()


def test_a_hidden_tab_catches_up(site: Site, page: Page, run: int) -> None:
    opened(page, site, run)
    site.do("metrics", run=run, losses=falling(10))
    wait_drawn(page, 10)
    tab = page.context.new_cdp_session(page)
    tab.send("Page.setWebLifecycleState", {"state": "frozen"})
    site.do("metrics", run=run, losses=falling(700), after=10)
    tab.send("Page.setWebLifecycleState", {"state": "active"})
    wait_drawn(page, 710)
    assert [x for x, _ in points(page)] == list(range(1, 711))


def test_eight_writers_and_a_long_reader_lose_nothing(site: Site, page: Page) -> None:
    stored = site.do("crowd", writers=8, points=100)
    assert [lines for _, lines in stored] == [100] * 8
    opened(page, site, stored[0][0])
    wait_drawn(page, 100)
    assert len(points(page)) == 100


def test_a_long_list_and_a_long_series_are_thinned_for_a_page(site: Site, page: Page, run: int) -> None:
    site.do("many", count=5000)
    page.goto(f"{site.url}/runs/")
    expect(page.get_by_test_id("run-row")).to_have_count(25)
    page.get_by_role("link", name="Older").click()
    expect(page.get_by_test_id("run-row")).to_have_count(25)
    odd = {333_334: 9.0, 500_001: float("nan"), 777_778: -1.0}
    site.do("past", run=run, count=1_000_000, other=odd)
    site.do("metrics", run=run, losses=[1.0], after=1_000_000)
    opened(page, site, run)
    wait_drawn(page, 1_000_001)
    found = points(page)
    assert len(found) < 3000
    shown = [point for point in found if point[1] == "NaN" or not 0.5 <= float(point[1]) <= 1.5]
    assert shown == [[333_334, 9.0], [500_001, "NaN"], [777_778, -1.0]]
