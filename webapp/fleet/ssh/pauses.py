"""When a node that could not be reached is tried again: pure but for the clock that it is given."""

from __future__ import annotations

from collections.abc import Callable

from .errors import SshError

LONGEST = 15.0
SPREAD = 0.2  # up to so much of a pause more or less, so that many processes don't come back at once
FORGET = 120.0  # seconds after which failures say nothing any more


class Pauses:
    """1, 2, 4, 8, then 15 seconds after the 1st, 2nd, ... failure in a row.

    `clock` returns seconds; `jitter` a number from 0 to 1.
    """

    def __init__(self, clock: Callable[[], float], jitter: Callable[[], float]):
        self._clock, self._jitter = clock, jitter
        self._failures, self._until = 0, 0.0
        self._error: SshError | None = None

    def failed(self, error: SshError) -> None:
        if self.is_over:
            self._failures = 0
        pause = min(2.0**self._failures, LONGEST)
        self._failures += 1
        self._error = error
        self._until = self._clock() + pause * (1 + SPREAD * (2 * self._jitter() - 1))

    def succeeded(self) -> None:
        self._failures, self._error = 0, None

    def last_error(self) -> SshError | None:
        """Return what the last try said, for as long as there should be no other."""
        return self._error if self._clock() < self._until else None

    @property
    def is_over(self) -> bool:
        """Whether there is nothing to remember."""
        return self._error is None or self._clock() > self._until + FORGET
