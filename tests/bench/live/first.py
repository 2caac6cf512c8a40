"""The first picture of a long run: python -m tests.bench.live.first [--points 1000000] [--loads 10]

Twelve charts of so many points each, written as lines and folded by the service. From the start of the navigation, in
an open window of a browser that has nothing in its cache, until each of the charts in sight has drawn its last point:
in a window so tall that all twelve are, with the metrics unfolded that no chart of ours knows, and in one as usual.
One load before them is not counted: a service that has just started still reads its templates.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser

from tests.bench.following.service import private_redis
from tests.browser.site import Site
from tests.e2e.browser import chromium

from .resting import rest, started
from .told import tell

GOAL = 1000.0  # ms
TALL, USUAL = (12, 4500), (1, 900)  # charts in sight, height of the window in px
UNFOLD = """addEventListener("DOMContentLoaded", () => {
  document.querySelector("#more-metrics details").open = true;
})"""
LONG = "tests.bench.live.acts:Long"
DRAWN = """([charts, last]) => {
  const {drawn, drawnAt} = window.shardboard ?? {drawn: {}};
  const done = Object.keys(drawn).filter(name => drawn[name] >= last);
  return done.length >= charts && Math.max(...done.map(name => drawnAt[name])) - performance.timeOrigin;
}"""


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.live.first")
    parser.add_argument("--points", type=int, default=1_000_000, help="of each of twelve series")
    parser.add_argument("--loads", type=int, default=10)
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="shardboard-bench-") as name, private_redis(Path(name) / "redis"):
        site = Site(Path(name) / "site", os.environ["SHARDBOARD_REDIS_URL"], rows=LONG)
        begun = time.monotonic()
        run = site.do("running", name="long", total=options.points)
        assert site.do("steps", run=run, count=options.points) == options.points
        print(f"{12 * options.points} points stored in {time.monotonic() - begun:.0f} s", file=sys.stderr)
        before = {process.pid for process in started()}
        with chromium() as browser:
            load(site, browser, run, options.points, *TALL, before)
            held = [measured(site, browser, run, options, *window, before) for window in (TALL, USUAL)]
        site.close()
    return 0 if all(held) else 1


def measured(
    site: Site, browser: Browser, run: int, options: argparse.Namespace, charts: int, height: int, before: set[int]
) -> bool:
    took = [load(site, browser, run, options.points, charts, height, before) for _ in range(options.loads)]
    what = f"{options.loads} loads, {charts} in sight of 12 charts of {options.points} points, until the last is drawn"
    return tell("first picture of a run page", took, {"99th percentile": GOAL}, what)


def load(site: Site, browser: Browser, run: int, last: int, charts: int, height: int, before: set[int]) -> float:
    context = site.visit(browser, viewport={"width": 1280, "height": height})
    context.add_init_script(UNFOLD)
    page = context.new_page()
    rest(before)
    page.goto(f"{site.url}/runs/{run}/", wait_until="commit")
    took = page.wait_for_function(DRAWN, arg=[charts, last], polling=200).json_value()
    context.close()
    return float(took)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
