"""What the watch costs: python -m tests.bench.noticing [--runs 200] [--lines 15] [--rounds 5] [--postgres]

Runs of 2 nodes with 8 GPUs each. Between two passes each node writes the 15 samples of 15 seconds, and rank 0 `--lines`
lines of metrics; a pass then looks at every run. Measured is the pass alone, by the wall and by the processor, with the
queries it asks. The goal is a tenth of one worker: 1.5 s of every 15 s.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

from . import figures

GOAL = 1500.0  # ms
PERIOD = 15
GPUS = 8


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.noticing")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--lines", type=int, default=15, help="with metrics, of each run between two passes")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--postgres", action="store_true", help="a private PostgreSQL in the place of SQLite")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="shardboard-noticing-") as name, ExitStack() as stack:
        os.environ["SHARDBOARD_STATE"] = str(Path(name) / "state")
        os.environ["SHARDBOARD_REDIS_URL"] = "redis://127.0.0.1:1/0"  # nobody is told: only the watch is measured
        if options.postgres:
            from tests import postgres

            os.environ["SHARDBOARD_DATABASE_URL"] = stack.enter_context(postgres.server())
        return _measured(options, Path(name))


def _measured(options: argparse.Namespace, folder: Path) -> int:
    _prepare()
    from django.utils import timezone

    from webapp.notices.models import Notice, Watch
    from workers.notices import watching

    write = _writing(folder, options.runs, options.lines)
    now, walls, processors, queries, loads = timezone.now(), [], [], [], []
    for _ in range(options.rounds + 1):  # the first pass makes the disks' forecasts, and is not like the others
        write()
        watching.sweep(timezone.now())  # begins the watches, which are due then
        now = max(now + timedelta(seconds=PERIOD), timezone.now())  # where writing took longer
        wall, processor, asked = _taken(lambda: watching.watch_runs(now))  # noqa: B023  called at once
        walls.append(wall)
        processors.append(processor)
        queries.append(asked)
        loads.append(figures.load())
        assert Watch.objects.filter(looked_at=now).count() == options.runs
    assert not Notice.objects.exists()
    where = "PostgreSQL" if options.postgres else "SQLite"
    print(f"first pass, with forecasts: {walls[0]:.0f} ms, {queries[0]} queries")
    print(f"then {statistics.median(queries[1:]) / options.runs:.1f} queries a run")
    print(f"processor: {statistics.median(processors[1:]):.0f} ms")
    name = f"pass over {options.runs} runs, {options.lines} lines each, {where}"
    line, holds = figures.verdict(name, walls[1:], GOAL, loads[1:])
    print(line)
    return 0 if holds else 1


def _prepare() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)


def _taken(work: Callable[[], Any]) -> tuple[float, float, int]:
    """Return milliseconds by the wall and by the processor, and how many queries were asked."""
    from django.db import connection

    asked = 0

    def count(execute: Any, *args: Any) -> Any:
        nonlocal asked
        asked += 1
        return execute(*args)

    wall, processor = time.perf_counter(), time.process_time()
    with connection.execute_wrapper(count):
        work()
    return 1000 * (time.perf_counter() - wall), 1000 * (time.process_time() - processor), asked


def _writing(folder: Path, runs: int, lines: int) -> Callable[[], None]:
    """Make the runs; return what writes the lines of 15 seconds of all of them."""
    from tests.webapp.rows import make_world

    world = make_world(folder)
    feeds = [world.running(f"run {number}") for number in range(runs)]
    for feed in feeds:
        feed.started(1_000_000)
    gpu = {"used": 60e9, "total": 80e9, "load": 0.97, "temperature": 61.0, "power": 640.0, "clock_sm": 1980.0,
           "clock_memory": 2619.0, "ecc_uncorrected": 0, "ecc_corrected": 0, "throttle": 4}  # fmt: skip
    host = {"ram_used": 2e11, "ram_total": 1e12, "cpu": 0.2, "load": 9.0, "disk_used": 1e12, "disk_free": 3e12,
            "disk_total": 4e12, "disk_read": 0.0, "disk_write": 1e6}  # fmt: skip
    sample = ("sample", None, {**host, "gpus": [{"index": index, **gpu} for index in range(GPUS)]})
    costs = {"step_seconds": 1.0, "tokens_per_second": 9e4, "learning_rate": 1e-5, "grad_norm": 0.4}
    step = 0

    def write() -> None:
        nonlocal step
        for feed in feeds:
            for rank in range(2):
                feed.write(f"node@{rank}", *[sample] * PERIOD)
            told = [("metrics", step + i, {"loss": 2.0 + 0.1 * (i % 7), **costs}) for i in range(1, lines + 1)]
            feed.write("train@0", *told)
        step += lines

    return write


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
