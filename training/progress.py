"""Progress of an export: bytes done of a phase, told about once a second. A request to stop is heeded as often."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from .journal import Journal
from .spec.events import Kind
from .stop import heed


class Meter:
    """Bytes done of a phase: a line at once, when `interval` seconds have passed, and when told to."""

    def __init__(
        self,
        journal: Journal,
        phase: str,
        total: int,
        interval: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
        done: int = 0,
    ):
        self.journal, self.phase, self.total, self.interval, self.clock = journal, phase, total, interval, clock
        self.done, self.said = done, -1
        self._lock = threading.RLock()
        self.tell()

    def add(self, count: int) -> None:
        """Count more bytes; any thread may."""
        with self._lock:
            self.done += count
            if self.clock() - self.told >= self.interval:
                self.tell()

    def tell(self) -> None:
        """Write a line now, unless the last one said the same; raise SystemExit where a stop was asked for."""
        heed(self.journal.path)
        self.told = self.clock()
        if self.done == self.said:
            return
        self.said = self.done
        self.journal.emit(Kind.PROGRESS, phase=self.phase, done=self.done, total=self.total)
