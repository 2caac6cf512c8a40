"""What is seen of a job while it lives, for the time when it has ended: its processes, those stopped, those that hang.

For the supervisor's own thread, which looks every few seconds and once more when the end has come.
"""

from __future__ import annotations

import os
import socket
import time
from dataclasses import dataclass, field
from pathlib import Path

from ..journal import Journal
from ..processes import descendants, environment, is_stopped
from ..spec.events import Kind
from ..spec.folder import JobFolder
from . import hang
from .cgroup import oom_kills
from .hang import Hanging

LOOK_SECONDS = 5.0


@dataclass(frozen=True)
class Seen:
    """`pids`: every process seen, with its rank. `stopped`: ranks that a signal had stopped when it ended, with pid.

    `oom_kills`: how many processes the kernel killed in our cgroup for memory meanwhile; None where that can't be
    read. `since`: the job's start by the monotonic clock. `hung`: it was ended because of `hanging`.
    """

    pids: dict[int, int | None] = field(default_factory=dict)
    stopped: dict[int, int] = field(default_factory=dict)
    hanging: tuple[Hanging, ...] = ()
    hung: bool = False
    oom_kills: int | None = None
    since: float = 0.0


class Scene:
    """Looks at the job in `folder`, whose processes are below this one."""

    def __init__(self, folder: JobFolder):
        self.folder = folder
        self._events = Journal(Path(folder.events))
        self._since = time.monotonic()
        self._kills = oom_kills()
        self._ranks: dict[int, int | None] = {}
        self._stopped: dict[int, int] = {}
        self._hanging: tuple[Hanging, ...] = ()
        self._hung = False

    def look(self) -> bool:
        """Look once; return True where the job hangs for longer than it may."""
        living = [process.pid for process in descendants(os.getpid())]
        for pid in living:
            if self._ranks.get(pid) is None:
                self._ranks[pid] = _rank(pid)
        stopped = {rank: pid for pid in living if (rank := self._ranks[pid]) is not None and is_stopped(pid)}
        for rank, pid in stopped.items():
            if rank not in self._stopped:
                self._tell(rank, pid)
        self._stopped = stopped
        self._hanging = tuple(hang.told(self.folder))
        self._hung = hang.over(self._hanging, time.time())
        return self._hung

    def seen(self) -> Seen:
        """Return what the looks gave; ask after the last of them."""
        now = oom_kills()
        kills = None if now is None or self._kills is None else now - self._kills
        return Seen(self._ranks, self._stopped, self._hanging, self._hung, kills, self._since)

    def _tell(self, rank: int, pid: int) -> None:
        text = f"rank {rank}, process {pid} on {socket.gethostname()}, is stopped by a signal: the others wait for it"
        self._events.emit(Kind.WARNING, text=text, rank=rank, pid=pid)


def _rank(pid: int) -> int | None:
    value = environment(pid).get(b"RANK", b"")
    return int(value) if value.isdigit() else None
