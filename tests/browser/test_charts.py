"""The charts of a run page as somebody uses them: a part at its own zoom, other axes, marks, and what is saved."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from .site import Site

pytestmark = pytest.mark.browser
STEPS = 2400  # more than a picture has points
NAN = 1210
PLOT = "document.querySelector('[data-chart=loss]').chart.plot"
XS = f"() => Array.from({PLOT}?.data[0] ?? [])"
# Red pixels of the column at x on the loss chart.
RED = f"""x => {{
  const plot = {PLOT}, ratio = devicePixelRatio, at = Math.round(plot.valToPos(x, 'x', true));
  const {{ data }} = plot.ctx.getImageData(at - 1, plot.bbox.top + 20 * ratio, 3, plot.bbox.height - 40 * ratio);
  let found = 0;
  for (let i = 0; i < data.length; i += 4)
    if (data[i + 3] && data[i] > 2 * data[i + 1] && data[i] > 2 * data[i + 2]) found++;
  return found;
}}"""
COUNTED = """window.moves = window.changes = 0;
addEventListener("mousemove", () => { window.moves += 1; });
const replace = history.replaceState.bind(history);
history.replaceState = (...all) => { window.changes += 1; replace(...all); };"""

WATCHED = """const { observe, disconnect } = ResizeObserver.prototype;
window.watched = new Map();
ResizeObserver.prototype.observe = function (what) { window.watched.set(this, what); observe.call(this, what); };
ResizeObserver.prototype.disconnect = function () { window.watched.delete(this); disconnect.call(this); };"""


@pytest.fixture(scope="module")
def run(site: Site) -> int:
    found: int = site.do("running", name="Charts & <marks>", total=3000)
    losses = [math.nan if step == NAN else 0.5 + 100 / step for step in range(1, STEPS + 1)]
    site.do("metrics", run=found, losses=losses)
    site.do("checkpoint", run=found, step=1200)
    site.do("samples", run=found, count=3)
    return found


def opened(site: Site, page: Page, run: int, query: str = "") -> None:
    page.goto(f"{site.url}/runs/{run}/{query}")
    page.wait_for_function(f"() => window.shardboard?.drawn?.loss >= {STEPS} || location.search.includes('steps')")
    page.wait_for_function(f"() => {PLOT}")


def test_a_part_is_read_at_its_own_zoom_and_stands_in_the_address(site: Site, page: Page, run: int) -> None:
    opened(site, page, run)
    assert len(page.evaluate(XS)) < STEPS
    chart = page.get_by_test_id("chart-loss")
    chart.scroll_into_view_if_needed()
    box = chart.locator(".u-over").bounding_box()
    assert box
    with page.expect_response(lambda answer: "from=" in answer.url and "name=loss" in answer.url):
        page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 40)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.52, box["y"] + 50, steps=3)
        page.mouse.up()
    ask = "() => { const xs = Array.from(%s.data[0]).filter(x => 1205 <= x && x <= 1240); return xs.length === 36 }"
    page.wait_for_function(ask % PLOT)  # every step is there
    assert page.evaluate(RED, NAN) > 10, "a value that is not finite is marked"
    assert page.evaluate(RED, NAN + 20) == 0
    shown = page.evaluate(f"[{PLOT}.scales.x.min, {PLOT}.scales.x.max]")
    other = page.context.new_page()
    other.goto(page.url)
    other.wait_for_function(f"() => {PLOT}")
    assert other.evaluate(f"[{PLOT}.scales.x.min, {PLOT}.scales.x.max]") == pytest.approx(shown, abs=0.01)
    chart.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("+")
    page.wait_for_function(f"from => {PLOT}.scales.x.min > from", arg=shown[0])
    page.keyboard.press("0")
    page.wait_for_function(f"() => {PLOT}.scales.x.max === {STEPS}")
    page.wait_for_function("() => !location.search.includes('steps')")


def test_a_long_drag_changes_the_address_seldom_and_in_the_end(site: Site, page: Page, run: int) -> None:
    """Browsers take a hundred changes of the address within seconds, then throw: the drag would stop there."""
    page.add_init_script(COUNTED)
    opened(site, page, run, "?steps=500..900")
    chart = page.get_by_test_id("chart-loss")
    chart.scroll_into_view_if_needed()
    box = chart.locator(".u-over").bounding_box()
    assert box
    page.keyboard.down("Shift")
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.1, box["y"] + 40, steps=150)
    page.mouse.up()
    page.keyboard.up("Shift")
    shown = f"[{PLOT}.scales.x.min, {PLOT}.scales.x.max].map(x => Math.round(x * 1000) / 1000).join('..')"
    page.wait_for_function(f"() => new URLSearchParams(location.search).get('steps') === {shown}")
    assert page.evaluate("() => window.moves") >= 100
    assert page.evaluate("() => window.changes < window.moves / 2")


def test_all_step_charts_follow_the_settings(site: Site, page: Page, run: int) -> None:
    page.add_init_script(WATCHED)
    opened(site, page, run)
    form = page.get_by_test_id("chart-settings")
    form.get_by_label("over").select_option("tokens")
    page.wait_for_function(f"() => {PLOT}.data[0].at(-1) === {512 * STEPS}")
    assert page.evaluate(f"{PLOT}.data[0][0]") == 512
    form.get_by_label("over").select_option("time")
    page.wait_for_function(f"() => {PLOT}.data[0][0] > 1e9")
    form.get_by_label("log scale").check()
    form.get_by_label("smoothing").fill("80")
    page.wait_for_function(
        f"() => {PLOT}.scales.y.distr === 3 && {PLOT}.series.some(s => s.label === 'loss, smoothed')"
    )
    page.wait_for_function("() => location.search === '?x=time&log=1&smoothing=0.8'")
    page.get_by_test_id("chart-grad_norm").scroll_into_view_if_needed()
    page.wait_for_function("() => window.watched.size && [...window.watched.values()].every(e => e.isConnected)")
    other = "document.querySelector('[data-chart=grad_norm]').chart.plot"
    page.wait_for_function(f"() => {other}?.data[0][0] > 1e9 && {other}.scales.y.distr === 3")


def test_marks_are_named_and_charts_saved(site: Site, page: Page, run: int, tmp_path: Path) -> None:
    opened(site, page, run)
    card = page.locator("div:has(> [data-chart=loss])")
    page.wait_for_function("() => document.querySelector('[data-chart=loss]').chart.placed?.length === 1")
    page.evaluate(f"{PLOT}.setCursor({{left: {PLOT}.valToPos(1200, 'x'), top: 20}})")
    expect(card.locator("[data-said]")).to_have_text("▲ checkpoint 1200")
    site.do("checkpoint", run=run, step=STEPS)
    page.wait_for_function(
        "() => document.querySelector('[data-chart=loss]').chart.placed?.length === 2"
    )  # as it comes
    with page.expect_download() as waiting:
        card.get_by_role("button", name="PNG").click()
    assert waiting.value.suggested_filename == "charts-marks-loss.png"
    assert waiting.value.path().read_bytes().startswith(b"\x89PNG")
    with page.expect_download() as waiting:
        card.get_by_role("link", name="CSV").click()
    lines = waiting.value.path().read_text("utf-8").splitlines()
    assert (lines[0], len(lines)) == ("series,attempt,axis,x,value", STEPS + 1)
    assert lines[NAN] == f"loss,1,step,{NAN}.0,NaN"


def test_figures_of_hosts_are_asked_for_when_they_come_in_sight(site: Site, page: Page, run: int) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    opened(site, page, run)
    assert not [url for url in asked if "temperature" in url]
    with page.expect_response(lambda answer: "name=node1%2Fgpu1%2Ftemperature" in answer.url):
        page.get_by_test_id("chart-gpu_temperature").scroll_into_view_if_needed()
    page.wait_for_function("() => window.shardboard.drawn['node1/gpu1/temperature'] > 0")


def test_a_curve_that_grows_for_days_stays_small_and_keeps_its_extremes(site: Site, page: Page, run: int) -> None:
    page.goto(f"{site.url}/runs/")
    found = page.evaluate("""async () => {
      const { Curve } = await import("/static/series.js");
      const curve = new Curve();
      for (let x = 1; x <= 100000; x++) curve.put(x, x === 4321 ? 99 : x === 5555 ? "NaN" : Math.sin(x));
      const { xs, ys, odd, lastX } = curve;
      return { most: xs.length, top: Math.max(...ys), odd: [...odd], ends: [xs[0], lastX] };
    }""")
    assert found["most"] <= 3000
    assert (found["top"], found["odd"], found["ends"]) == (99, [[5555, "NaN"]], [1, 100000])
