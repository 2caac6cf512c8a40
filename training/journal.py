"""The journal: numbered event lines appended to one file, one write() each, never failing its caller.

Any process of the node may append to the same file: a lock keeps the numbers rising. A line that could not
be written (a full disk) is kept and tried again with the next one; a torn one is cut off first.
"""

from __future__ import annotations

import fcntl
import os
import sys
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from .spec.events import BadLine, Event, line_of, parse

KEPT = 10_000  # lines held back while the disk refuses them; the oldest go first
SHORT_TAIL = 1 << 14  # enough for the last line in nearly every case
TAIL = 1 << 20  # bytes looked at for the last line; a line is far shorter


class Waiting(NamedTuple):
    """A line that is not in the file yet. `only_first`: not when the file has one of its kind by then."""

    at: float
    kind: str
    step: int | None
    data: dict[str, Any]
    only_first: bool = False

    def encoded(self, seq: int) -> bytes:
        """Return the line in bytes; what JSON can't hold is written as Python shows it, or it would block the rest."""
        try:
            return line_of(seq, self.at, self.kind, self.step, self.data).encode()
        except (TypeError, ValueError):
            shown = {name: value if isinstance(value, (int, str)) else repr(value) for name, value in self.data.items()}
            return line_of(seq, self.at, self.kind, self.step, shown).encode()


@dataclass
class Opened:
    """The file, open in process `pid`. `seq` is the number of its last line while it is `size` bytes long."""

    file: int
    pid: int
    inode: os.stat_result
    size: int = -1
    seq: int = 0

    def usable(self, path: str) -> bool:
        """Tell whether it still is the file at `path`, and ours alone: a forked child would share our lock with us."""
        try:
            return self.pid == os.getpid() and os.path.samestat(self.inode, os.stat(path))
        except FileNotFoundError:
            return False


class Journal:
    """Appends events to `path`. Several threads and several processes may share it."""

    def __init__(self, path: str | os.PathLike[str]):
        self.path, self._name = Path(path), os.fspath(path)  # to look at a Path takes longer than to look at a name
        self._opened: Opened | None = None
        self._thread = threading.Lock()
        self._waiting: deque[Waiting] = deque(maxlen=KEPT)
        self._complained = False

    def emit(self, kind: str, step: int | None = None, **data: Any) -> None:
        """Append one line. Never raises: training must not end because of its telemetry."""
        self._send(Waiting(time.time(), kind, step, data))

    def emit_first(self, kind: str, step: int | None = None, **data: Any) -> None:
        """Append one line unless the file already has one of this kind, by whichever process."""
        self._send(Waiting(time.time(), kind, step, data, only_first=True))

    @property
    def held(self) -> int:
        """How many lines wait for a disk that refuses them."""
        return len(self._waiting)

    def _send(self, line: Waiting) -> None:
        with self._thread:
            self._waiting.append(line)
            try:
                self._flush()
            except (OSError, ValueError, TypeError) as error:
                self._complain(error)

    def _flush(self) -> None:
        opened = self._open()
        fcntl.flock(opened.file, fcntl.LOCK_EX)
        try:
            self._append(opened)
        finally:
            fcntl.flock(opened.file, fcntl.LOCK_UN)

    def _append(self, opened: Opened) -> None:
        size = os.lseek(opened.file, 0, os.SEEK_END)
        if size != opened.size:  # else nobody wrote since we did: to read the last line took longer than all the rest
            opened.seq = last_seq(self.path)
        opened.size = -1
        while self._waiting:
            line = self._waiting[0]
            if not (line.only_first and any(event.kind == line.kind for event in tail(self.path))):
                size += write_whole(opened.file, line.encoded(opened.seq + 1))
                opened.seq += 1
            self._waiting.popleft()
        opened.size = size

    def _open(self) -> Opened:
        if self._opened is None or not self._opened.usable(self._name):
            self.close()
            file = os.open(self._name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            self._opened = Opened(file, os.getpid(), os.fstat(file))
        return self._opened

    def close(self) -> None:
        """Close the file until the next line."""
        if self._opened:
            os.close(self._opened.file)
            self._opened = None

    def __del__(self) -> None:
        self.close()

    def _complain(self, error: Exception) -> None:
        if not self._complained:
            self._complained = True
            with suppress(OSError):  # the log may lie on the disk that is full
                print(f"journal {self.path}: {error}; going on", file=sys.stderr, flush=True)


def write_whole(file: int, line: bytes) -> int:
    """Append `line` to a file that is locked by us, in one write() or not at all; return its bytes. Raises OSError."""
    written = os.write(file, line)
    if written != len(line):
        os.ftruncate(file, os.fstat(file).st_size - written)
        raise OSError(28, f"only {written} of {len(line)} bytes fitted")
    return written


def tail(path: Path) -> list[Event]:
    """Return the events in the last part of the file; broken lines are left out."""
    return [event for line in _last_lines(path, TAIL) if (event := _parsed(line))]


def last_seq(path: Path) -> int:
    """Return the number of the file's last line; 0 for an empty file."""
    # Read for every line that is written: reading all of TAIL took up to 80 ms each time.
    for size in (SHORT_TAIL, TAIL):
        for line in reversed(_last_lines(path, size)):
            if event := _parsed(line):
                return event.seq
    return 0


def _last_lines(path: Path, most: int) -> list[bytes]:
    """Return the whole lines in the last `most` bytes."""
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - most))
        lines = file.read().splitlines(keepends=True)
    return [line for line in (lines[1:] if size > most else lines) if line.endswith(b"\n")]


def _parsed(line: bytes) -> Event | None:
    try:
        return parse(line)
    except BadLine:
        return None
