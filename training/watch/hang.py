"""The hang watch: a rank that makes no progress writes down where each of its threads is. No torch.

A thread of its own looks at the pulse. Where a rank hangs in a collective, the others wait for it there, so that
each of them writes its own stacks. Where the main thread never lets go of Python's lock, that thread can't run
either: then faulthandler's timer, which needs no Python, writes them, a little later. A person may ask for them any
time, with SIGUSR1. Nothing is ended by it.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from ..journal import Journal
from ..processes import environment
from ..spec.events import Kind
from ..spec.folder import JobFolder
from .pulse import Pulse

# Parts without a sign of progress on the way take so many times the limit; a step has one at each of its parts.
PATIENCE = {"loading": 6.0, "save": 6.0, "closing": 6.0}
LOOKS = 20  # within the limit
LONGEST_LOOK = 10.0  # seconds


class HangWatch:
    """Watches this rank's `pulse` while it is entered. `seconds` without progress are a hang."""

    def __init__(self, pulse: Pulse, folder: JobFolder, rank: int, seconds: float):
        self.pulse, self.rank, self.seconds = pulse, rank, seconds
        self.path = Path(folder.stacks(rank))
        self._journal = Journal(folder.events)  # a journal is for one thread
        self._look = min(seconds / LOOKS, LONGEST_LOOK)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="hang watch", daemon=True)
        self._told = False

    def __enter__(self) -> HangWatch:
        """Begin to watch, and write the stacks on SIGUSR1 from now on. For the main thread.

        Where there is no place for the file, goes on without: training must not end because of its telemetry.
        """
        try:
            self._start()
        except OSError as error:
            print(f"hang watch: {error}; going on without", file=sys.stderr, flush=True)
        return self

    def _start(self) -> None:
        self._file = self.path.open("a")
        self._size = os.fstat(self._file.fileno()).st_size
        faulthandler.register(signal.SIGUSR1, self._file)
        self._arm(*self.pulse.last())  # before the thread had a chance to run
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        """Stop watching. A file without stacks is removed."""
        if not self._thread.is_alive():
            return
        self._closed.set()
        self._thread.join()
        faulthandler.cancel_dump_traceback_later()
        faulthandler.unregister(signal.SIGUSR1)
        with suppress(OSError):
            self._file.close()
            if not self.path.stat().st_size:
                self.path.unlink()

    def _run(self) -> None:
        while not self._closed.wait(self._look):
            part, idle = self.pulse.last()
            if idle < self._limit(part):
                self._told = False
                self._arm(part, idle)
            elif not self._told:
                self._told = True
                faulthandler.cancel_dump_traceback_later()
                self._dump(part, idle)
            self._tell_of_others_dumps()

    def _limit(self, part: str) -> float:
        return self.seconds * PATIENCE.get(part, 1.0)

    def _arm(self, part: str, idle: float) -> None:
        """Set the timer that writes without Python, for a little later than we would ourselves."""
        faulthandler.dump_traceback_later(self._limit(part) - idle + 2 * self._look, file=self._file)

    def _dump(self, part: str, idle: float) -> None:
        """Write and tell. Never fails: the disk may be what everything waits for, or full."""
        since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(time.time() - idle))
        where = f"rank {self.rank} makes no progress in {part.replace('_', ' ')}, step {self.pulse.step}, since {since}"
        with suppress(OSError):
            print(f"{where}\n", file=self._file, flush=True)
            faulthandler.dump_traceback(self._file)
            print(file=self._file, flush=True)
        self._emit("; ".join([where, *stopped_neighbours()]), part=part, idle_seconds=round(idle, 1))

    def _tell_of_others_dumps(self) -> None:
        """The timer and the signal write past us: what they wrote is told as soon as Python runs again."""
        size = os.fstat(self._file.fileno()).st_size
        if size > self._size:
            self._emit(f"rank {self.rank} was asked for its stacks, or did not let Python run")

    def _emit(self, text: str, **data: Any) -> None:
        self._size = os.fstat(self._file.fileno()).st_size
        self._journal.emit(
            Kind.WARNING, self.pulse.step, text=f"{text}; stacks in {self.path.name}", rank=self.rank, **data
        )


def stopped_neighbours() -> list[str]:
    """Name this node's ranks that a signal has stopped: they can't write their own stacks."""
    found = []
    for process in _siblings():
        rank = environment(process.pid).get(b"RANK", b"")
        if rank and process.pid != os.getpid() and _status(process) == psutil.STATUS_STOPPED:
            found.append(f"rank {rank.decode()}, process {process.pid}, is stopped by a signal")
    return found


def _siblings() -> list[psutil.Process]:
    with suppress(psutil.Error):
        return list(psutil.Process(os.getppid()).children())
    return []


def _status(process: psutil.Process) -> str:
    try:
        return str(process.status())
    except psutil.Error:
        return ""
