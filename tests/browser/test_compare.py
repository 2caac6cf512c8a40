"""Runs beside each other: what the page says is what it has read, however long the curves take to come."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, Route, expect

from .site import Site

pytestmark = pytest.mark.browser
COMPARED = "window.shardboard.compared"
CURVES = "**/compare/series.json*"


def test_nothing_is_said_of_curves_that_are_on_their_way(site: Site, page: Page) -> None:
    runs = [site.do("running", name=f"one of two, {which}") for which in ("first", "second")]
    for run in runs:
        site.do("metrics", run=run, losses=[3.0, 2.5])
    held: list[Route] = []
    page.route(CURVES, lambda route: held.append(route))
    with page.expect_request(CURVES):
        page.goto(f"{site.url}/runs/compare?run={runs[0]}&run={runs[1]}")
    chart = page.get_by_test_id("compare-chart")
    assert (chart.inner_text(), page.evaluate(COMPARED)) == ("", None), "no run is said to be without a point"
    held.pop().continue_()
    expect(chart).to_contain_text("one of two")
    with page.expect_request(CURVES):
        page.get_by_test_id("along").select_option("time")
    page.get_by_test_id("smooth").fill("0.5")
    shown = page.evaluate(COMPARED)
    assert (shown["smooth"], shown["x"]) == (0.5, "step"), "steps are not called seconds"
    held.pop().continue_()
    page.wait_for_function(f"() => {COMPARED}.x === 'time'")
