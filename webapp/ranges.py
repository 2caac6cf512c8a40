"""PURE: the `Range` header of a download (RFC 9110, section 14), one range of bytes at a time."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

LONGEST = 100  # characters; a header with more than two 40-digit numbers is nobody's download
RANGE = re.compile(r"bytes=\s*(?:([0-9]+)-([0-9]*)|-([0-9]+))\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Span:
    """The bytes [start, end) of `total`."""

    start: int
    end: int
    total: int

    @property
    def length(self) -> int:
        return self.end - self.start

    @property
    def content_range(self) -> str:
        """The `Content-Range` of a 206."""
        return f"bytes {self.start}-{self.end - 1}/{self.total}"


class Unsatisfiable(ValueError):
    """The range begins behind the end: answer 416 with this `content_range`."""

    def __init__(self, total: int):
        self.content_range = f"bytes */{total}"
        super().__init__(f"the range is not within the {total} bytes there are")


def requested(header: str | None, total: int, *, etag: str, if_range: str | None = None) -> Span | None:
    """Return the bytes to answer 206 with, or None where the whole is to be sent with 200.

    `etag` is the current entity tag, quotes included; `if_range` the header `If-Range`. The whole is sent
    where there is no range, where it isn't one range of bytes that makes sense, and where `If-Range` names
    another version (or a date: only a strong tag proves that the bytes are the same).
    Raises Unsatisfiable.
    """
    match = RANGE.fullmatch(header.strip()) if header and len(header) <= LONGEST else None
    if match is None or not _same_version(if_range, etag):
        return None
    first, last, suffix = match.groups()
    return _suffix(int(suffix), total) if suffix else _from(int(first), int(last) if last else None, total)


def entity_tag(*facts: str) -> str:
    """Return a strong tag, quotes included, that changes with any of `facts` (hashes, names, sizes)."""
    lengths = "".join(f"{len(fact)}:{fact}," for fact in facts)
    return f'"{hashlib.sha256(lengths.encode()).hexdigest()[:32]}"'


def _same_version(if_range: str | None, etag: str) -> bool:
    return if_range is None or (if_range.strip() == etag and not etag.startswith("W/"))


def _suffix(count: int, total: int) -> Span | None:
    if count == 0:
        raise Unsatisfiable(total)
    return Span(max(0, total - count), total, total) if total else None


def _from(first: int, last: int | None, total: int) -> Span | None:
    if last is not None and last < first:
        return None
    if first >= total:
        raise Unsatisfiable(total)
    return Span(first, total if last is None else min(last + 1, total), total)
