"""What signals ask of a supervisor, and a wait that each of them ends."""

from __future__ import annotations

import os
import select
import signal
from types import FrameType


class Interrupts:
    """Installs the handlers. `stop`: end gracefully. `end`: end now."""

    def __init__(self) -> None:
        self.stop = self.end = False
        self._read, write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        # They get a handler and aren't ignored: an ignored signal would stay ignored in the ranks.
        for number in (signal.SIGCHLD, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR2, signal.SIGALRM):
            signal.signal(number, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._asked_to_stop)
        signal.signal(signal.SIGUSR1, self._asked_to_end)

    def wait(self, seconds: float) -> None:
        """Return at the next signal or after `seconds`."""
        select.select([self._read], [], [], seconds)
        while True:
            try:
                os.read(self._read, 512)
            except BlockingIOError:
                return

    def _asked_to_stop(self, _number: int, _frame: FrameType | None) -> None:
        # asked a second time: there is no more patience
        self.stop, self.end = True, self.stop

    def _asked_to_end(self, _number: int, _frame: FrameType | None) -> None:
        self.end = True
