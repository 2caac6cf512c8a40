"""The limit on time and the request to stop, and the guard that keeps them where no code of ours runs.

Between tokens generation asks `why`. Loading a model or reading a long prompt can take minutes inside libraries:
there a thread of its own ends the process, after it has told what was answered so far.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from types import FrameType, TracebackType

from ..spec.folder import JobFolder
from .course import STOP, TIME, Course

LOOK_SECONDS = 0.2
PATIENCE_SECONDS = 2.0  # for a token on its way to be finished


class Limits:
    """`seconds` from now on, and the file that asks for a stop, beside the events."""

    def __init__(self, events: Path, seconds: float, clock: Callable[[], float] = time.monotonic):
        self.clock, self.seconds, self.began = clock, seconds, clock()
        self._stop = Path(JobFolder(PurePosixPath(events.parent)).stop)
        self._signalled = False
        self._answer_end = self.began + seconds

    def heed_signals(self) -> None:
        """Take TERM and INT for a request to stop."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._signal)

    def _signal(self, signum: int, frame: FrameType | None) -> None:
        self._signalled = True

    def share(self, answers: int) -> None:
        """Give the answer that begins now its share of the time that is left for `answers`, itself among them."""
        now = self.clock()
        self._answer_end = now + (self.began + self.seconds - now) / answers

    def why_this(self) -> str:
        """Return what asks for the end of the answer in hand; "" where nothing does."""
        return self.why() or (TIME if self.clock() >= self._answer_end else "")

    def why(self) -> str:
        """Return what asks for an end now: "" where nothing does."""
        if self._signalled or self._stop.exists():
            return STOP
        return TIME if self.clock() - self.began >= self.seconds else ""


class Guard:
    """Ends the process where a limit is not heeded within `patience` seconds. `leave` is what ends it."""

    def __init__(
        self,
        limits: Limits,
        course: Course,
        leave: Callable[[int], object] = os._exit,
        patience: float = PATIENCE_SECONDS,
    ):
        self.limits, self.course, self.leave, self.patience = limits, course, leave, patience
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Guard:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(LOOK_SECONDS):
            if (why := self.limits.why()) and not self._done.wait(self.patience):
                self.course.cut(why)
                self.leave(1)
                return
