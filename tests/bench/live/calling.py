"""What a line costs the training loop: python -m tests.bench.live.calling [--calls 20000]

Times `Journal.emit` as the callbacks call it at each step, with all figures of a step; each call alone.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.bench.writer import metrics
from training.journal import Journal
from training.spec.events import Kind

from .told import tell

MEAN, HIGH = 20.0, 100.0  # microseconds
WARM_UP = 200


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.live.calling")
    parser.add_argument("--calls", type=int, default=20_000)
    calls = parser.parse_args(argv).calls
    with tempfile.TemporaryDirectory(prefix="shardboard-bench-") as folder:
        took = timed(Path(folder) / "events.jsonl", calls)
    goals = {"mean": MEAN, "99th percentile": HIGH}
    what = f"{calls} calls of Journal.emit, {len(metrics(1))} figures each"
    return 0 if tell("the call in the training loop", took, goals, what, unit="us", digits=1) else 1


def timed(path: Path, calls: int) -> list[float]:
    """Return the microseconds of each call."""
    journal, took = Journal(path), []
    for step in range(1, calls + WARM_UP + 1):
        figures = metrics(step)
        begun = time.perf_counter_ns()
        journal.emit(Kind.METRICS, step, **figures)
        took.append((time.perf_counter_ns() - begun) / 1000)
    assert path.read_bytes().count(b"\n") == calls + WARM_UP
    return took[WARM_UP:]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
