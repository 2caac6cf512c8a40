"""The pulse of a rank: what it is at, and since when. No torch."""

from __future__ import annotations

import time
from collections.abc import Callable


class Pulse:
    """Beats at each sign of progress. One thread beats, another may read."""

    def __init__(self, part: str, clock: Callable[[], float] = time.monotonic):
        self.clock = clock
        self.step = 0
        self._last = (part, clock())

    def beat(self, part: str) -> None:
        self._last = (part, self.clock())  # one assignment: whoever reads never sees half of it

    def last(self) -> tuple[str, float]:
        """Return what is done and the seconds since its last sign of progress."""
        part, at = self._last
        return part, self.clock() - at
