"""PURE: how often one page is sent to."""

from __future__ import annotations

EVERY = 0.1  # seconds a message, on the average
AT_ONCE = 3  # messages that may go together after a rest


class Pace:
    """Ten messages a second: a lone one goes at once, and of many each 0.1 s after the one before.

    A few may go closer together (a virtual schedule, as in ATM Forum TM 4.0, "GCRA"): with a fixed pause a page of a
    run that writes ten lines a second is, from its first late line on, late by as much with each that follows.
    """

    def __init__(self) -> None:
        self._due = 0.0

    def wait(self, now: float) -> float:
        """Return the seconds until the next message may go; times are of one monotonic clock."""
        return max(0.0, self._due - (AT_ONCE - 1) * EVERY - now)

    def sent(self, now: float) -> None:
        self._due = max(self._due, now) + EVERY
