"""By keyboard alone: from the list to a new run, a filter, a chart's figures and the stop; where one stands is seen."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from .axe import grave
from .site import Site

pytestmark = pytest.mark.browser
FAR = 150  # presses of Tab; only ends a test that would hang
# Whether the element in focus looks otherwise than without it: an outline, a ring or another border.
SEEN = """() => {
  const it = document.activeElement, looks = () => { const s = getComputedStyle(it);
    return [s.outlineStyle !== "none" && s.outlineWidth, s.boxShadow, s.borderColor, s.backgroundColor].join(); };
  it.style.transition = "none";
  const with_focus = looks();
  it.blur();
  const without = looks();
  it.focus({focusVisible: true});
  return with_focus !== without && it === document.activeElement;
}"""


def tab_to(page: Page, selector: str) -> None:
    """Press Tab until the element is in focus; all stops on the way, and it, have to be seen to be it."""
    for _ in range(FAR):
        page.keyboard.press("Tab")
        if page.evaluate("() => document.activeElement === document.body"):
            continue
        assert page.evaluate(SEEN), f"not seen in focus: {page.evaluate('document.activeElement.outerHTML')[:200]}"
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"{selector} is not within {FAR} presses of Tab")


@pytest.fixture
def run(site: Site, request: pytest.FixtureRequest) -> int:
    found: int = site.do("running", name=request.node.name)
    site.do("metrics", run=found, losses=[3.0, 2.5, 2.0])
    return found


def test_a_run_is_found_read_and_stopped(site: Site, page: Page, run: int) -> None:
    page.goto(f"{site.url}/runs/")
    tab_to(page, "[name=q]")
    page.keyboard.type(f"{run}")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**q={run}*")
    tab_to(page, f'a[href="/runs/{run}/"]')
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("link")).to_contain_text("live")
    tab_to(page, '[data-testid="stop"]')
    page.keyboard.press("Enter")
    asked = page.locator("#ask-stop")
    expect(asked).to_be_visible()
    assert grave(page) == []
    page.keyboard.press("Escape")
    expect(asked).to_be_hidden()
    assert page.evaluate("() => document.activeElement.dataset.testid") == "stop", "back where it was asked from"
    page.keyboard.press("Enter")
    tab_to(page, '[data-testid="stop-confirm"]')
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("state")).to_contain_text("stopping")
    assert site.do("state", run=run) == "stopping"


def test_a_chart_is_read_as_a_table(site: Site, page: Page, run: int) -> None:
    page.goto(f"{site.url}/runs/{run}/")
    page.wait_for_function("() => window.shardboard?.drawn?.loss >= 3")
    tab_to(page, "div:has(> [data-chart=loss]) summary")
    page.keyboard.press("Enter")
    expect(page.locator("div:has(> [data-chart=loss]) .chart-table tbody tr")).to_have_text(
        ["3loss2", "2loss2.5", "1loss3"]
    )


def test_a_run_is_made(site: Site, page: Page) -> None:
    page.goto(f"{site.url}/runs/")
    tab_to(page, '[data-testid="new-run"]')
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs/new/")
    tab_to(page, '[data-testid="name"]')
    page.keyboard.type("made by keyboard")
    tab_to(page, '[data-testid="preset"]')
    for key in ("Home", "End"):  # each loads another preset, and the page comes anew; the last is tiny
        with page.expect_navigation():
            page.keyboard.press(key)
        expect(page.get_by_test_id("preset")).to_be_focused()
    for name in ("model", "cluster", "dataset"):
        tab_to(page, f'[data-testid="{name}"]')
        page.keyboard.press("ArrowDown")
    tab_to(page, '[data-testid="launch"]')
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("run-name")).to_have_text("made by keyboard")
    expect(page.get_by_test_id("state")).to_contain_text("queued")
