"""PURE: bytes of a growing file -> whole lines -> events, with the offset that was reached."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from training.spec.events import BadLine, Event, parse
from webapp.runs import sources
from webapp.runs.journal import Bad

LOG_BYTES = 1 << 16  # a log line is cut after this many
LINE_BYTES = 1 << 22  # an event line that grows beyond this is given up
SHOWN = 300
LARGEST = 2**31 - 1
EARLIEST, LATEST = -62_135_596_800.0, 253_402_300_799.0  # the years 1 to 9999, which all databases hold


@dataclass
class Batch:
    """What `offset` bytes of the file gave beyond what was given before. `ends`: the offset behind each of `lines`."""

    offset: int
    lines: list[Event] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    bad: list[Bad] = field(default_factory=list)

    def extend(self, later: Batch) -> None:
        """Take in what was read of the same file after this."""
        self.offset = later.offset
        self.lines += later.lines
        self.ends += later.ends
        self.bad += later.bad


class Reader:
    """Keeps the torn line at the end until the rest of it comes. `offset`: where the first byte fed stands."""

    def __init__(self, offset: int):
        self.offset = offset
        self._torn = b""

    @property
    def reached(self) -> int:
        """Where the next byte to be fed stands."""
        return self.offset + len(self._torn)

    def feed(self, block: bytes) -> Batch:
        whole, newline, rest = (self._torn + block).rpartition(b"\n")
        self._torn = rest
        batch = Batch(self.offset)
        for line in whole.split(b"\n") if newline else ():
            self._take(line, len(line) + 1, batch)
        if len(self._torn) > self.limit:
            self._cut(batch)
        return batch

    def rest(self) -> Batch:
        """Return what the torn line at the end gives; call when nothing more will come."""
        batch, torn = Batch(self.offset), self._torn
        self._torn = b""
        if torn:
            self._take(torn, len(torn), batch)
        return batch

    limit = LINE_BYTES

    def _cut(self, batch: Batch) -> None:
        torn, self._torn = self._torn, b""
        self._take(torn, len(torn), batch)

    def _take(self, line: bytes, length: int, batch: Batch) -> None:
        self.offset += length
        batch.offset = self.offset
        try:
            batch.lines.append(sound(line))
            batch.ends.append(self.offset)
        except BadLine:
            if line.strip():
                batch.bad.append(Bad(self.offset, line[:SHOWN].decode("utf-8", "backslashreplace")))


class LogReader(Reader):
    """Each line of a log as an event; `seq` is the offset behind it, the time is ours. Empty lines are left out.

    Lines are cut at fixed distances from their start, so that a second reading gives the same events.
    """

    limit = LOG_BYTES

    def _cut(self, batch: Batch) -> None:
        while len(self._torn) > LOG_BYTES:
            piece, self._torn = self._torn[:LOG_BYTES], self._torn[LOG_BYTES:]
            self._store(piece, len(piece), batch)

    def _take(self, line: bytes, length: int, batch: Batch) -> None:
        while len(line) > LOG_BYTES:
            self._store(line[:LOG_BYTES], LOG_BYTES, batch)
            line, length = line[LOG_BYTES:], length - LOG_BYTES
        self._store(line, length, batch)

    def _store(self, line: bytes, length: int, batch: Batch) -> None:
        self.offset += length
        batch.offset = self.offset
        if text := fold(line):
            batch.lines.append(Event(self.offset, time.time(), "log", data={"text": text}))
            batch.ends.append(self.offset)


def fold(line: bytes) -> str:
    """Return a line's text as a terminal would leave it: of a progress bar, its last state."""
    parts = [part for part in line.split(b"\r") if part.strip()]
    return parts[-1].decode("utf-8", "backslashreplace").rstrip() if parts else ""


def sound(line: bytes) -> Event:
    """Parse a line; raise BadLine also where its numbers fit no row."""
    try:
        event = parse(line)
        fits = event.seq < 2**62 and (event.step is None or 0 <= event.step <= LARGEST) and len(event.kind) <= 30
        if not fits or not EARLIEST <= event.at <= LATEST:
            raise BadLine("a number is out of range")
    except (OverflowError, RecursionError, ValueError) as error:
        raise BadLine(str(error)) from error
    return event


def reader_of(source: str, offset: int) -> Reader:
    return LogReader(offset) if sources.is_log(source) else Reader(offset)
