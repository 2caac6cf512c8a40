"""The list of 10,000 runs in a browser: python -m tests.bench.live.listing [--loads 20]

From the start of the navigation, with nothing in the browser's cache, to the first frame after a row has been laid out.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser

from tests.bench.following.service import private_redis
from tests.browser.site import Site
from tests.e2e.browser import chromium

from .told import tell

MANY = "tests.bench.live.acts:TenThousand"
GOAL = 1000.0  # ms
# Looks at each frame, from before the page's own first byte; the frame after the one that found a row has drawn it.
WATCH = """(() => {
  const look = () => {
    const row = document.querySelector('[data-testid="run-row"]');
    if (!row || !row.getBoundingClientRect().height) { requestAnimationFrame(look); return; }
    requestAnimationFrame(() => { window.rowDrawn = performance.now(); });
  };
  requestAnimationFrame(look);
})()"""


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.live.listing")
    parser.add_argument("--loads", type=int, default=20)
    loads = parser.parse_args(argv).loads
    with tempfile.TemporaryDirectory(prefix="shardboard-bench-") as name, private_redis(Path(name) / "redis"):
        site = Site(Path(name) / "site", os.environ["SHARDBOARD_REDIS_URL"], rows=MANY)
        with chromium() as browser:
            took = [load(site, browser) for _ in range(loads)]
        site.close()
    what = f"{loads} loads, navigation to the first row drawn"
    return 0 if tell("list of 10,000 runs", took, {"99th percentile": GOAL}, what) else 1


def load(site: Site, browser: Browser) -> float:
    context = site.visit(browser)
    context.add_init_script(WATCH)
    page = context.new_page()
    page.goto(f"{site.url}/runs/", wait_until="commit")
    took = page.wait_for_function("() => window.rowDrawn").json_value()
    context.close()
    return float(took)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
