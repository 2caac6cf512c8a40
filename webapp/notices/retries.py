"""PURE: when a message that did not arrive is tried again."""

from __future__ import annotations

from datetime import timedelta

TRIES = 8
PAUSES = (15, 60, 300, 900, 3600, 3 * 3600, 6 * 3600)  # seconds after the first try, the second, ...


def pause(tries: int) -> timedelta | None:
    """Return how long to wait after this many tries; None: it is given up, after some ten hours in all."""
    return timedelta(seconds=PAUSES[tries - 1]) if tries < TRIES else None
