"""Where a step's time goes: all of it is booked, to one part at a time. No torch."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .pulse import Pulse

DATA = "data"  # waiting for the loader
FORWARD_BACKWARD = "forward_backward"
OPTIMIZER = "optimizer"  # with clipping
SAVE = "save"
EVALUATION = "evaluation"
OTHER = "other"


class Laps:
    """Seconds of this process by part, by its own clock. Each turn from one part to the next is a beat of `pulse`."""

    def __init__(self, pulse: Pulse, clock: Callable[[], float] = time.perf_counter):
        self.part = OTHER
        self._pulse = pulse
        self._clock = clock
        self._since = clock()
        self._booked: dict[str, float] = defaultdict(float)

    def turn(self, part: str) -> None:
        """Book the time since the last turn to the part that ran; go on with `part`."""
        now = self._clock()
        self._booked[self.part] += now - self._since
        self.part, self._since = part, now
        self._pulse.beat(part)

    @contextmanager
    def during(self, part: str) -> Iterator[None]:
        """Book what happens within to `part`."""
        before = self.part
        self.turn(part)
        try:
            yield
        finally:
            self.turn(before)

    def take(self) -> dict[str, float]:
        """Return the seconds of each part since the last call; together they are all the time that passed."""
        self.turn(self.part)
        booked, self._booked = self._booked, defaultdict(float)
        return dict(booked)
