"""When a notice begins and when it ends: only what lasts is told, and nothing flaps.

A notice has two limits (Level) and two patiences. Between looks only a few numbers are remembered for each thing that
is watched, so a look costs what has come since the one before, not what a rule's time spans.
"""

from __future__ import annotations

from typing import NamedTuple

from ..kinds import Kind
from .verdict import Level, Verdict

GAP = 120.0  # seconds without a word, after which what was seen before says nothing of what is


class Patience(NamedTuple):
    """Seconds that something has to be bad before a notice begins, and good before it ends."""

    begins: float
    ends: float


PATIENCE = {
    Kind.NON_FINITE: Patience(0, 120),
    Kind.SPIKE: Patience(0, 120),
    Kind.PROGRESS: Patience(0, 0),
    Kind.IDLE: Patience(300, 30),
    Kind.DISK: Patience(0, 60),
    Kind.HEAT: Patience(30, 120),
}


class Since(NamedTuple):
    """From when to when it has been so: bad before a notice is open, good while it is."""

    first: float
    last: float


class Held(NamedTuple):
    """What follows of a verdict. `begins`: a notice does, of what has been so since then. `since`: to be remembered."""

    begins: float | None = None
    ends: bool = False
    since: Since | None = None


def hold(verdict: Verdict, since: Since | None, *, is_open: bool) -> Held:
    """Return whether a notice begins or ends by this verdict; `since`: what the one before had to be remembered."""
    if verdict.level != (Level.GOOD if is_open else Level.BAD):
        return Held()
    # what is good may be seldom heard of, as a step is; what is bad has to be so all the time
    goes_on = since is not None and (is_open or verdict.first - since.last <= GAP)
    first = since.first if since is not None and goes_on else verdict.first
    patience = PATIENCE[verdict.kind]
    if verdict.last - first < (patience.ends if is_open else patience.begins):
        return Held(since=Since(first, verdict.last))
    return Held(ends=True) if is_open else Held(begins=first)
