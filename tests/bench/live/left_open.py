"""A page left open on a run of 100,000 steps: python -m tests.bench.live.left_open [--steps 100000]

The steps come by lines, 500 at a time, faster than any training, each with a line of log, and for five of them a sample
of each of two nodes. Memory of the tab is its live JavaScript objects after a collection, and what its processes hold,
at each tenth of the way; it has to be as much at the end as at the first. Then a step, a line of log and a sample of
each node a second, and the processor time of the tab's processes.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import psutil
from playwright.sync_api import CDPSession, Page

from tests.bench.following.service import private_redis
from tests.browser.site import Site
from tests.e2e.browser import chromium

from .first import LONG
from .resting import spent, started
from .told import tell

GROWTH, SHARE = 20.0, 10.0  # percent; of a core
BATCH, SAMPLES, PARTS = 500, 100, 10


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.live.left_open")
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--seconds", type=int, default=60, help="at a line a second, at the end")
    options = parser.parse_args(argv)
    steps, seconds = options.steps, options.seconds
    with tempfile.TemporaryDirectory(prefix="shardboard-bench-") as name, private_redis(Path(name) / "redis"):
        site = Site(Path(name) / "site", os.environ["SHARDBOARD_REDIS_URL"], rows=LONG)
        run = site.do("running", name="left open", total=steps + seconds)
        before = {process.pid for process in started()}
        with chromium() as browser:
            page = site.visit(browser).new_page()
            page.goto(f"{site.url}/runs/{run}/")
            write(site, page, run, BATCH)
            tab = renderers(before)
            held = [part(site, page, tab, run, steps // PARTS) for _ in range(PARTS)]
            shares = [second(site, run, tab) for _ in range(seconds)]
        site.close()
    return 0 if told(held, shares, steps) else 1


def renderers(before: set[int]) -> list[psutil.Process]:
    """Return Chromium's renderers: the only tab, and what it keeps ready beside it."""
    return [process for process in started(before) if "--type=renderer" in process.cmdline()]


def write(site: Site, page: Page, run: int, steps: int) -> int:
    """Write so many steps, waiting for each batch to be drawn; return the last."""
    last = 0
    for _ in range(0, steps, BATCH):
        last = told_of(site, run, BATCH, SAMPLES)
        page.wait_for_function("last => window.shardboard?.drawn?.loss >= last", arg=last)
    return last


def told_of(site: Site, run: int, steps: int, samples: int) -> int:
    """Write so many steps, a line of log each, and samples of each node; return the last step."""
    last: int = site.do("steps", run=run, count=steps)
    site.do("log", run=run, texts=[f"step {last - i} of a run that prints a line each" for i in reversed(range(steps))])
    site.do("samples", run=run, count=samples)
    return last


def part(site: Site, page: Page, tab: list[psutil.Process], run: int, steps: int) -> tuple[float, float]:
    """Write so many steps; return MB of live objects and of the process."""
    last = write(site, page, run, steps)
    session = page.context.new_cdp_session(page)
    objects = live_objects(session)
    session.detach()
    held = objects / 1e6, sum(process.memory_info().rss for process in tab) / 1e6
    print(f"step {last}: {held[0]:.1f} MB of objects, {held[1]:.0f} MB of the processes", file=sys.stderr)
    return held


def live_objects(session: CDPSession) -> float:
    session.send("HeapProfiler.enable")
    for _ in range(2):  # what a page let go of together with its elements is found by the second
        session.send("HeapProfiler.collectGarbage")
    session.send("Performance.enable")
    metrics = session.send("Performance.getMetrics")["metrics"]
    return float(next(metric["value"] for metric in metrics if metric["name"] == "JSHeapUsedSize"))


def second(site: Site, run: int, tab: list[psutil.Process]) -> float:
    """Write what a second brings; return the percent of a core that the tab took in the second after it."""
    told_of(site, run, 1, 1)
    begun, before = time.monotonic(), spent(tab)
    time.sleep(1.0)
    return 100 * (spent(tab) - before) / (time.monotonic() - begun)


def told(held: list[tuple[float, float]], shares: list[float], steps: int) -> bool:
    what = f"against step {steps // PARTS}, at each tenth of {steps} steps"
    grown = [[100 * (now / column[0] - 1) for now in column[1:]] for column in zip(*held, strict=True)]
    names = ("live objects of the tab, growth", "memory of the tab's processes, growth")
    flat = [tell(name, column, {"most": GROWTH}, what, unit="%") for name, column in zip(names, grown, strict=True)]
    light = tell(
        "processor of the tab at a step a second", shares, {"mean": SHARE}, f"{len(shares)} s", unit="% of a core"
    )
    return all(flat) and light


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
