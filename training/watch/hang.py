"""The hang watch: a rank that makes no progress writes down where each of its threads is. No torch.

A thread of its own looks at the pulse. Where a rank hangs in a collective, the others wait for it there, so that
each of them writes its own stacks. Where the main thread never lets go of Python's lock, that thread can't run
either: then faulthandler's timer, which needs no Python, writes them, a little later. A person may ask for them any
time, with SIGUSR1. Nothing is ended by it: it tells in a file that it hangs, for as long as it does, and until when
that is borne; the supervisor ends the job then.
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
from types import FrameType
from typing import Any

import psutil

from ..evidence import hang
from ..evidence.hang import Hanging
from ..journal import Journal
from ..processes import environment
from ..spec import patience
from ..spec.events import Kind
from ..spec.folder import JobFolder
from .pulse import Pulse

UNBOUNDED = ("loading",)  # one rank may rightly work alone for hours: see ranks.LOADING_HOURS
# Where a main thread stands that waits for other ranks, in one of its innermost frames.
COLLECTIVES = ("/torch/distributed/", "/training/ranks.py")
INNERMOST = 3
LOOKS = 20  # within the limit
LONGEST_LOOK = 10.0  # seconds


class HangWatch:
    """Watches this rank's `pulse` while it is entered. `seconds` without progress are a hang.

    After `end_seconds` more of them it is to be ended; 0: never.
    """

    def __init__(self, pulse: Pulse, folder: JobFolder, rank: int, seconds: float, end_seconds: float = 0.0):
        self.pulse, self.rank, self.seconds, self.end_seconds = pulse, rank, seconds, end_seconds
        self.folder, self._main = folder, threading.main_thread().ident
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
        self._goes_on()
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
                self._goes_on()
                self._arm(part, idle)
            elif not self._told:
                self._told = True
                faulthandler.cancel_dump_traceback_later()
                self._dump(part, idle)
            self._tell_of_others_dumps()

    def _goes_on(self) -> None:
        if self._told:
            self._told = False
            hang.untell(self.folder, self.rank)

    def _limit(self, part: str) -> float:
        return self.seconds * patience.times(part)

    def _arm(self, part: str, idle: float) -> None:
        """Set the timer that writes without Python, for a little later than we would ourselves."""
        faulthandler.dump_traceback_later(self._limit(part) - idle + 2 * self._look, file=self._file)

    def _dump(self, part: str, idle: float) -> None:
        """Write and tell. Never fails: the disk may be what everything waits for, or full."""
        hanging = self._hanging(part, idle)
        where = hanging.sentence
        with suppress(OSError):
            hang.tell(self.folder, hanging)
        with suppress(OSError):
            print(f"{where}\n", file=self._file, flush=True)
            faulthandler.dump_traceback(self._file)
            print(file=self._file, flush=True)
        self._emit("; ".join([where, *stopped_neighbours()]), part=part, idle_seconds=round(idle, 1))

    def _hanging(self, part: str, idle: float) -> Hanging:
        now, frame = time.time(), sys._current_frames().get(self._main or 0)
        borne = 0.0 if part in UNBOUNDED else self.end_seconds * patience.times(part)
        ends = now + borne if borne else 0.0
        return Hanging(self.rank, part, self.pulse.step, now - idle, ends, _waits(frame), _place(frame))

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


def _waits(frame: FrameType | None) -> bool:
    """Tell whether a thread waits in a collective for other ranks."""
    for _ in range(INNERMOST):
        if frame and any(part in frame.f_code.co_filename for part in COLLECTIVES):
            return True
        frame = frame.f_back if frame else None
    return False


def _place(frame: FrameType | None) -> str:
    """Return where a thread is, as `file:line in function`; "" where it isn't known."""
    if frame is None:
        return ""
    code = frame.f_code
    return f"{'/'.join(Path(code.co_filename).parts[-3:])}:{frame.f_lineno} in {code.co_name}"


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
