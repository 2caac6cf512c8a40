"""From a line on a node to its drawn point: python -m tests.bench.live.latency --runs 50 --viewers 20

Rank 0 of every run writes 10 lines a second on a loopback host; `python -m workers.follow` reads them over SSH into
SQLite; uvicorn serves one page in Chromium and the sockets of the other viewers, each on a run of its own. The time of
a point is from the time that its line carries to the frame in which the chart has drawn it. --trace says where that
time goes, and each process' share of a processor; it takes some itself.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect

from tests.bench.following import __main__ as following
from tests.bench.latency import first_drawn
from tests.e2e.browser import chromium
from tests.sshd import Sshd

from .told import tell
from .traced import Trace
from .web import Web

RATE, HIGH = 10, 150.0  # lines a second and run; ms
PATIENCE = 300_000  # ms; only ends what would hang


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.live.latency")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--viewers", type=int, default=1, help="one of them is Chromium")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--trace", action="store_true", help="say where the time goes")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="shardboard-bench-") as name, ExitStack() as stack:
        took = measured(Path(name), options, stack)
    what = f"{len(took)} lines of one of {options.runs} runs, {RATE} a second each, {options.viewers} viewers"
    return 0 if tell("line to drawn point", took, {"99th percentile": HIGH}, what) else 1


def measured(folder: Path, options: argparse.Namespace, stack: ExitStack) -> list[float]:
    """Return the ms of each line of the run that Chromium looks at."""
    os.environ["SHARDBOARD_STATE"] = str(folder / "state")
    from tests.bench.following import service

    stack.enter_context(service.private_redis(folder / "redis"))
    following._migrate()
    from tests.bench.following import rows
    from webapp.fleet.ssh import make_identity

    pair = make_identity()
    hosts = stack.enter_context(loopback(pair.public))
    scratches = [str(folder / f"n{number}") for number in range(len(hosts))]
    places = [rows.Place(h.address, h.port, h.host_key, at) for h, at in zip(hosts, scratches, strict=True)]
    runs = rows.make(places, pair.private, pair.public, options.runs)[0]
    stack.enter_context(service.follower(folder / "follower.log"))
    web = stack.enter_context(Web.started(folder))
    writer = started("writer", options.seconds, RATE, *scratches, *runs)
    following._settled(2 * len(runs))
    watchers = started("viewers", web.url, web.cookie(), *(runs[i % len(runs)] for i in range(1, options.viewers)))
    for _ in range(1, options.viewers):
        assert watchers.stdout
        assert watchers.stdout.readline() == "open\n"
    trace = Trace() if options.trace else None
    drawn = seen(web, runs[0], writer, int(options.seconds * RATE) - 1, trace)
    watchers.communicate()
    lines = [event for event in web.events(runs[0]) if event.kind == "metrics"]
    if trace:
        trace.tell(lines, drawn)
    return [drawn[event.step] - event.at.timestamp() * 1000 for event in lines if event.step in drawn]


@contextmanager
def loopback(key: str) -> Iterator[list[Sshd]]:
    servers = [Sshd(key) for _ in range(2)]
    try:
        yield servers
    finally:
        for server in servers:
            server.finish()


def started(module: str, *words: Any) -> subprocess.Popen[str]:
    argv = [sys.executable, "-m", f"tests.bench.live.{module}", *map(str, words)]
    return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def seen(web: Web, run: int, writer: subprocess.Popen[str], last: int, trace: Trace | None) -> dict[int, float]:
    """Let the writer begin once the page is live; return when each step was drawn, in ms since the epoch."""
    with chromium() as browser:
        context = web.visit(browser)
        if trace:
            trace.watch(context)
        page = context.new_page()
        page.goto(f"{web.url}/runs/{run}/")
        expect(page.get_by_test_id("link")).to_contain_text("live")
        page.wait_for_load_state("networkidle")
        with trace.counted(page) if trace else nullcontext():
            print(f"late by {writer.communicate('go')[0].strip()} s", file=sys.stderr)
            wait_drawn(page, last)
        return first_drawn(page)


def wait_drawn(page: Page, step: int) -> None:
    """Wait for the last point, looking seldom: each look takes time from the page."""
    ask = "last => window.shardboard.drawn.loss >= last"
    page.wait_for_function(ask, arg=step, polling=500, timeout=PATIENCE)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
