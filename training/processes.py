"""Processes of a job: who they are, and the end of all of them.

Every process of a job carries SHARDBOARD_JOB=<folder> in its environment; it keeps that through setsid, daemons'
double forks and the death of its parents, so one look at /proc finds what a process group would have lost. What a
process did to lose it, `belonging` finds.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from .spec.mark import MARK

PROC = Path("/proc")
SHORT_GRACE = 5.0  # seconds between TERM and KILL where nothing is to be saved any more
KILL_SECONDS = 10.0  # a process in an uninterruptible wait outlives KILL; report it rather than wait for ever
POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Identity:
    """One process for good: a pid alone is given away again. `started`: clock ticks since boot `boot`."""

    pid: int
    started: int
    boot: str

    @classmethod
    def of(cls, pid: int) -> Identity | None:
        """Return who has `pid` now; None where it is nobody or a zombie."""
        found = stat(pid)
        return found.identity(pid) if found else None

    def alive(self) -> bool:
        return Identity.of(self.pid) == self

    def send(self, number: int) -> None:
        """Send a signal, unless it is gone or not ours."""
        if self.alive():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(self.pid, number)


class Stat(NamedTuple):
    """What the kernel says of a living process. `terminal`: whether it has one. `started`: clock ticks since boot."""

    parent: int
    group: int
    session: int
    terminal: bool
    started: int

    def identity(self, pid: int) -> Identity:
        return Identity(pid, self.started, boot_id())


def stat(pid: int) -> Stat | None:
    """Return that of `pid`; None where it is nobody or a zombie."""
    try:
        fields = (PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    if fields[0] in (b"Z", b"X"):
        return None
    parent, group, session, terminal = map(int, fields[1:5])
    return Stat(parent, group, session, terminal != 0, int(fields[19]))


def boot_id() -> str:
    return (PROC / "sys/kernel/random/boot_id").read_text("ascii").strip()


def marked() -> list[tuple[Identity, Path]]:
    """Return every living process that carries a mark and the folder in it, this one left out."""
    found = []
    for pid in pids():
        if pid != os.getpid() and (folder := _mark(pid)) and (identity := Identity.of(pid)):
            found.append((identity, folder))
    return found


def end(find: Callable[[], Iterable[Identity]], grace: float) -> list[Identity]:
    """TERM to all that `find` gives, up to `grace` seconds to go, then KILL; return those still there.

    `find` is asked again and again: what is started meanwhile is ended as well.
    """
    termed: set[Identity] = set()

    def term_new() -> list[Identity]:
        living = list(find())
        for process in living:
            if process not in termed:
                process.send(signal.SIGTERM)
        termed.update(living)
        return living

    def kill() -> list[Identity]:
        living = list(find())
        for process in living:
            process.send(signal.SIGKILL)
        return living

    return _until_none(term_new, grace) and _until_none(kill, KILL_SECONDS)


def _until_none(look: Callable[[], list[Identity]], seconds: float) -> list[Identity]:
    deadline = time.monotonic() + seconds
    while (left := look()) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    return left


def descendants(root: int) -> list[Identity]:
    """Return the living processes below `root`, itself left out."""
    parents = {pid: parent for pid in pids() if (parent := _parent(pid)) is not None}
    below, found = {root}, []
    grown = True
    while grown:
        fresh = {pid for pid, parent in parents.items() if parent in below and pid not in below}
        grown = bool(fresh)
        below |= fresh
    for pid in sorted(below - {root}):
        if identity := Identity.of(pid):
            found.append(identity)
    return found


def environment(pid: int) -> dict[bytes, bytes]:
    """Return the environment a process was started with; empty where it is gone or another user's."""
    try:
        raw = (PROC / str(pid) / "environ").read_bytes()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return {}
    return {name: value for name, _, value in (entry.partition(b"=") for entry in raw.split(b"\0") if entry)}


def is_stopped(pid: int) -> bool:
    """Tell whether a signal has stopped a process: it lives, and does nothing until it is continued."""
    try:
        return (PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()[0] == b"T"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _mark(pid: int) -> Path | None:
    value = environment(pid).get(MARK.encode())
    return Path(os.fsdecode(value)) if value else None


def _parent(pid: int) -> int | None:
    try:
        return int((PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return None


def pids() -> list[int]:
    """Return the numbers of all processes that can be seen, sorted."""
    return sorted(int(name) for name in os.listdir(PROC) if name.isdigit())
