"""PURE: an uncompressed tar of files that lie elsewhere, as byte ranges.

The archive is never made: its length and every byte's place follow from the list of names and sizes, so that
any part of it can be sent, and an interrupted download goes on where it stopped. The same list gives the same
bytes. Weights don't compress, so nothing is lost by not trying.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

BLOCK = tarfile.BLOCKSIZE
END = bytes(2 * BLOCK)
MODE = 0o644


@dataclass(frozen=True)
class Literal:
    """Bytes of the archive's own: headers and padding."""

    data: bytes

    @property
    def length(self) -> int:
        return len(self.data)

    def part(self, start: int, end: int) -> Literal:
        return Literal(self.data[start:end])


@dataclass(frozen=True)
class Slice:
    """`length` bytes at `offset` of the file `name`, named as in the list given."""

    name: str
    offset: int
    length: int

    def part(self, start: int, end: int) -> Slice:
        return Slice(self.name, self.offset + start, end - start)


Segment = Literal | Slice


@dataclass(frozen=True)
class Archive:
    """A tar of `files`, (name, size in bytes) in this order, all under the folder `top`.

    `mtime` is every file's time, in seconds since the epoch: give one that doesn't change between two
    downloads. Raises ValueError for a name that would not stay under `top`, a repeated one or a negative size.
    """

    top: str
    files: tuple[tuple[str, int], ...]
    mtime: int = 0

    def __post_init__(self) -> None:
        _check_top(self.top)
        _check_files(self.files)

    @cached_property
    def size(self) -> int:
        """The length of the whole archive in bytes."""
        return sum(segment.length for segment in self._all)

    def segments(self, start: int = 0, end: int | None = None) -> Iterator[Segment]:
        """Yield what makes up the bytes [start, end) of the archive; `end` is its length where not given.

        Raises ValueError unless 0 <= start <= end <= size.
        """
        end = self.size if end is None else end
        if not 0 <= start <= end <= self.size:
            raise ValueError(f"bytes {start} to {end} are not all within the {self.size} of the archive")
        at = 0
        for segment in self._all:
            first, last = max(start - at, 0), min(end - at, segment.length)
            if first < last:
                yield segment.part(first, last)
            at += segment.length

    @cached_property
    def _all(self) -> tuple[Segment, ...]:
        out: list[Segment] = []
        padding = b""
        for name, size in self.files:
            out.append(Literal(padding + self._header(name, size)))
            if size:
                out.append(Slice(name, 0, size))
            padding = bytes(-size % BLOCK)
        return (*out, Literal(padding + END))

    def _header(self, name: str, size: int) -> bytes:
        info = tarfile.TarInfo(f"{self.top}/{name}")
        info.size, info.mtime, info.mode = size, self.mtime, MODE
        # pax, since a shard may pass the 8 GiB that the classic header can say
        return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "strict")


def _check_top(top: str) -> None:
    if len(PurePosixPath(top).parts) != 1 or top in (".", "..", "/") or not _plain(top):
        raise ValueError(f"{top!r} can't be the archive's folder: it must be one plain name")


def _check_files(files: Sequence[tuple[str, int]]) -> None:
    seen: set[str] = set()
    for name, size in files:
        parts = name.split("/")
        if not _plain(name) or any(part in ("", ".", "..") for part in parts):
            raise ValueError(f"{name!r} would not stay under the archive's folder")
        if name in seen:
            raise ValueError(f"{name!r} is in the list twice")
        if size < 0:
            raise ValueError(f"{name!r} has a negative size: {size}")
        seen.add(name)


def _plain(name: str) -> bool:
    """Tell whether every system can have a file of this name: no control characters, no lone surrogates."""
    return name.isprintable() and "\\" not in name
