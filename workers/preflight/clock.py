"""How far a node is away: how long a command takes, there and back, and how far its clock is from ours.

The offset is NTP's: the node's time against the middle between question and answer, and no further off than half of
what lies between them. Of a few tries the shortest counts.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from webapp.fleet.ssh import Host

from .finding import Finding, Findings, nothing, ok, warning

TRIES = 3
SECONDS = 15.0
FAR_SECONDS = 2.0
ASK = ("date", "+%s.%N")


@dataclass(frozen=True)
class Tick:
    """Seconds since the epoch: ours before and after, the node's in between; None where its `date` tells no time."""

    before: float
    after: float
    there: float | None

    @property
    def took(self) -> float:
        return self.after - self.before

    @property
    def offset(self) -> float | None:
        return None if self.there is None else self.there - (self.before + self.after) / 2


async def look(host: Host, tries: int = TRIES) -> Tick:
    """Raises SshError."""
    return min([await _tick(host) for _ in range(tries)], key=lambda tick: tick.took)


async def _tick(host: Host) -> Tick:
    before, began = time.time(), time.monotonic()
    result = await host.run(ASK, seconds=SECONDS)
    took = time.monotonic() - began
    try:
        there = float(result.out.strip().rpartition("\n")[2])
    except ValueError:
        there = None
    return Tick(before, before + took, there)


def findings(tick: Tick) -> Findings:
    return {"reach": ok(f"a command takes {tick.took * 1000:.0f} ms"), "clock": _clock(tick)}


def _clock(tick: Tick) -> Finding:
    if tick.offset is None:
        return nothing("its `date` does not tell the time in parts of a second")
    text = f"{abs(tick.offset):.3f} s {'ahead' if tick.offset > 0 else 'behind'}, known to {tick.took * 500:.0f} ms"
    if abs(tick.offset) < FAR_SECONDS:
        return ok(text)
    fix = "Order and durations are right all the same; chrony or systemd-timesyncd on the node sets its clock."
    return warning(text, fix, "clock")
