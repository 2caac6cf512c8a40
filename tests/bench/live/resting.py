"""Wait until a browser that has opened a window is done with it: that takes seconds of two processors, of its own."""

from __future__ import annotations

import time
from collections.abc import Collection

import psutil

LOOK, LOOKS = 0.2, 2  # seconds apart; so many in a row without work
IDLE = 0.011  # seconds of a processor in between: a tick of the system's clock


def started(before: Collection[int] = ()) -> list[psutil.Process]:
    """Return the processes below this one, without those of these ids."""
    return [child for child in psutil.Process().children(recursive=True) if child.pid not in before]


def spent(processes: Collection[psutil.Process]) -> float:
    """Return the processor time of those that are alive, in seconds."""
    return sum(_spent(process) for process in processes)


def _spent(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system)


def rest(before: Collection[int]) -> None:
    """Wait until no process but those of these ids has computed for a moment."""
    idle, last = 0, spent(started(before))
    while idle < LOOKS:
        time.sleep(LOOK)
        now = spent(started(before))
        idle, last = (idle + 1 if abs(now - last) <= IDLE else 0), now
