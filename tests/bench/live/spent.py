"""How much of a processor each process took: of this one and all that it started, by name."""

from __future__ import annotations

import time
from collections import defaultdict
from typing import Any

import psutil

# What stands in a command line: what it is called. The first that fits.
NAMES = {
    "training follow": "follow, on the nodes",
    "workers.follow": "follower",
    "redis-server": "Redis",
    "uvicorn": "web",
    "live.viewers": "viewers",
    "live.writer": "writer",
    "--type=renderer": "Chromium, the page",
    "--type=gpu-process": "Chromium, its frames",
    "--type=utility": "Chromium, its network",
    "chromium": "Chromium, the rest",
    "playwright": "Playwright",
}
OURS = "this process, with the nodes' SSH servers"


class Spent:
    """From its making until `table` is asked for."""

    def __init__(self) -> None:
        self.begun, self.before = time.monotonic(), _times()

    def table(self) -> str:
        """Return one line a name: percent of a processor."""
        took = time.monotonic() - self.begun
        shares: dict[str, float] = defaultdict(float)
        for (_, name), seconds in (now := _times()).items():
            shares[name] += 100 * (seconds - self.before.get((_, name), 0.0)) / took
        assert now
        lines = [f"  {name:<42} {share:5.1f}%" for name, share in sorted(shares.items(), key=lambda pair: -pair[1])]
        return "\n".join([*lines, f"  {'all':<42} {sum(shares.values()):5.1f}% of a processor"])


def _times() -> dict[tuple[int, str], float]:
    found: dict[tuple[int, str], float] = {}
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        with process.oneshot():
            times = process.cpu_times()
            found[process.pid, _name(process)] = times.user + times.system
    return found


def _name(process: Any) -> str:
    words = " ".join(process.cmdline())
    return next((name for part, name in NAMES.items() if part in words), OURS)
