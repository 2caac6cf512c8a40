"""From a line written on a node to its point drawn in the browser: python -m tests.bench.latency

Starts the whole service, launches runs on a loopback host whose ranks are a writer of 10 lines a second, and looks
at their pages in Chromium. Prints median and 99th percentile in ms; status 1 where one exceeds its goal.
--state FOLDER is kept and taken up again, --runs N, --trace says where the time goes.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from tests.e2e.browser import chromium
from tests.e2e.person import SLOW, Person
from tests.e2e.stack import Stack
from workers.local import broker
from workers.local.place import Place

from . import place, trace
from .figures import load, percentile, verdict
from .writer import GO

LINES = 200
MEDIAN_GOAL, HIGH_GOAL = 100.0, 250.0  # ms


@dataclass(frozen=True)
class Took:
    """One run: ms from line to point, one a line."""

    values: list[float]
    load: float

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def high(self) -> float:
        return percentile(self.values, 0.99)

    def __str__(self) -> str:
        figures = f"median {self.median:.0f} ms, 99th percentile {self.high:.0f} ms, most {max(self.values):.0f} ms"
        return f"{figures}; {len(self.values)} lines; load average {self.load:.1f}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.latency", description="From line to point.")
    parser.add_argument("--state", type=Path, help="state folder of the service, kept; default: a new one, removed")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--trace", action="store_true", help="say where the time goes")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="shardboard-bench-") as new:
        took = measure((options.state or Path(new)).resolve(), options.runs, options.trace)
    loads = [t.load for t in took]
    figures = [
        verdict("line to point, median", [t.median for t in took], MEDIAN_GOAL, loads),
        verdict("line to point, 99th percentile", [t.high for t in took], HIGH_GOAL, loads),
    ]
    print("\n".join(line for line, _ in figures))
    return 0 if all(holds for _, holds in figures) else 1


def measure(state: Path, runs: int, traced: bool) -> list[Took]:
    stack = Stack(state)
    try:
        stack.start()
        place.add_node(stack)
        with chromium() as browser:
            return [one_run(stack, browser, number, traced) for number in range(1, runs + 1)]
    finally:
        stack.stop()


def one_run(stack: Stack, browser: Browser, number: int, traced: bool) -> Took:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    if traced:
        trace.watch_frames(context)
    person = Person(context.new_page(), stack.url)
    person.log_in()
    run = launch(stack, number)
    nudges = trace.Nudges(redis_of(stack)) if traced else None
    open_page(stack, person, run)
    (place.job_folder(stack, run) / GO).touch()
    wait_drawn(person.page)
    drawn, written, loaded = first_drawn(person.page), written_at(stack, run), load()
    took = Took([drawn[step] - at for step, at in written.items()], loaded)
    print(f"run {number}: {took}", flush=True)
    if nudges:
        rows = trace.stored(stack, run)
        stages = {"written": written, "stored": rows, "nudged": nudges.after(rows), "sent": trace.sent(person.page)}
        print(trace.table(stages | {"drawn": drawn}), flush=True)
    context.close()
    stack.wait_for_state(run, "succeeded")
    return took


def redis_of(stack: Stack) -> str:
    return broker.url_file(Place(stack.state).redis).read_text("utf-8").strip()


def launch(stack: Stack, number: int) -> int:
    order = {
        "name": f"latency {number}", "preset": "tiny", "recipe": {"optimisation": {"max_steps": LINES}},
        "model": "tiny-llama-5M", "dataset": "code-chat", "cluster": place.CLUSTER, "launch": True,
    }  # fmt: skip
    return int(stack.api("POST", "/runs", order)["id"])


def open_page(stack: Stack, person: Person, run: int) -> None:
    """Return when the page of the running run is live and nothing is on its way to it."""
    stack.wait_for_state(run, "running")
    person.open_run(run)
    person.see_state("running")
    expect(person.at("link")).to_contain_text("live", timeout=SLOW)
    person.wait_drawn(0, "node0/ram_used")
    person.page.wait_for_load_state("load")


def wait_drawn(page: Page) -> None:
    """Wait for the last point, looking seldom: each look takes time from the page."""
    page.wait_for_function("last => window.shardboard.drawn.loss >= last", arg=LINES, polling=500, timeout=SLOW)


def first_drawn(page: Page) -> trace.Times:
    """Return when each step was on the chart: one frame may draw several."""
    draws: list[tuple[str, float, float]] = page.evaluate("window.shardboard.draws")
    found: trace.Times = {}
    for name, x, at in draws:
        if name == "loss":
            found |= dict.fromkeys(range(len(found) + 1, int(x) + 1), at)
    return found


def written_at(stack: Stack, run: int) -> trace.Times:
    """Return the time that each line carries, in ms; it was read just before the line was written."""
    events = stack.api("GET", f"/runs/{run}/events?limit=5000")["items"]
    return {
        event["step"]: datetime.fromisoformat(event["at"]).timestamp() * 1000
        for event in events
        if event["kind"] == "metrics"
    }


if __name__ == "__main__":
    sys.exit(main())
