"""The demo's first run, from the launch to `succeeded`: python -m tests.bench.demo [--keep FOLDER]

Starts `python -m workers.local demo` in a state folder of its own and watches: how long the run takes, what all
processes hold together (proportional set size, so that shared pages count once), and whether the loss falls.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import psutil

from tests.e2e.stack import Stack

from . import figures

RUN_SECONDS = 300.0
MEMORY_GIB = 10.0


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.demo")
    parser.add_argument("--keep", type=Path, help="state folder, kept afterwards (default: a temporary one)")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="shardboard-demo-") as made:
        return measure(Stack(options.keep or Path(made)))


def measure(stack: Stack) -> int:
    """Print three lines; return 0 where all goals hold."""
    try:
        stack.start("demo")
        (run,) = stack.api("GET", "/runs")["items"]
        peak, loads = watch(stack, run["id"])
        told = stack.run(run["id"])
        losses = stack.api("GET", f"/runs/{run['id']}/series/loss")["values"]
    finally:
        stack.stop()
    print(f"run {run['id']}: {told['state']} ({told['reason']}), {told['step']} of {told['total_steps']} steps")
    took, in_time = figures.verdict("launch to succeeded", [elapsed(told["history"])], RUN_SECONDS, loads, unit="s")
    memory, fits = figures.verdict("all processes, peak", [peak / 2**30], MEMORY_GIB, loads, unit="GiB", digits=1)
    fell = told["state"] == "succeeded" and losses[-1] < losses[0]
    print(took, memory, sep="\n")
    print(f"loss: {losses[0]:.3f} to {losses[-1]:.3f}; goal to fall: {'holds' if fell else 'falls short'}")
    return 0 if in_time and fits and fell else 1


def watch(stack: Stack, run: int) -> tuple[int, list[float]]:
    """Return the peak of all processes' memory in bytes and the load averages, seen until the run's end."""
    peak, loads = 0, []
    while stack.run(run)["state"] not in ("succeeded", "failed", "stopped"):
        peak = max(peak, sum(held(process) for process in processes(stack)))
        loads.append(figures.load())
        time.sleep(1)
    return peak, loads


def processes(stack: Stack) -> list[psutil.Process]:
    """Return the launcher, its children, and what runs detached on its hosts: all have its state folder to name."""
    assert stack.launcher is not None
    launcher = psutil.Process(stack.launcher.pid)
    found = {process.pid: process for process in [launcher, *launcher.children(recursive=True)]}
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("SHARDBOARD_JOB", "").startswith(str(stack.state)):
                found[process.pid] = process
    return list(found.values())


def held(process: psutil.Process) -> int:
    with suppress(psutil.Error):
        return int(process.memory_full_info().pss)
    return 0  # it has ended meanwhile


def elapsed(history: list[dict[str, str]]) -> float:
    """Return the seconds between the first and the last change of state."""
    first, last = (datetime.fromisoformat(move["at"]) for move in (history[0], history[-1]))
    return (last - first).total_seconds()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
