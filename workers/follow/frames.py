"""PURE: the two directions of a talk with `python -m training follow`: orders out, frames in."""

from __future__ import annotations

import json
from typing import NamedTuple

HELLO = b"shardboard follow 1\n"  # as training/follow.py says it
PING = b"{}\n"
MOST_BEFORE = 1 << 16  # bytes that a login may print above it
HEAD = 64


class NoFrame(ValueError):
    """What came is not the other side of this talk."""


class Frame(NamedTuple):
    """`block` stands at `offset` of the file `id`; id 0: it still lives."""

    id: int
    offset: int
    block: bytes


def add(number: int, path: str, offset: int) -> bytes:
    return json.dumps({"add": number, "path": path, "offset": offset}).encode() + b"\n"


def drop(number: int) -> bytes:
    return json.dumps({"drop": number}).encode() + b"\n"


class Frames:
    """Cuts what comes into frames, wherever it was cut on the way. `begun`: the other side has said who it is."""

    def __init__(self) -> None:
        self.begun = False
        self._held = bytearray()

    def feed(self, content: bytes) -> list[Frame]:
        """Return the frames that are whole now. Raises NoFrame."""
        self._held += content
        if not self.begun and not self._begin():
            return []
        found, at = [], 0
        while (frame := self._frame(at)) is not None:
            found.append(frame[0])
            at = frame[1]
        del self._held[:at]
        return found

    def _begin(self) -> bool:
        above, said, rest = self._held.partition(HELLO)
        if not said and len(above) > MOST_BEFORE:
            raise NoFrame(f"{bytes(above[:200])!r} came in the place of frames")
        self.begun = bool(said)
        self._held = rest if said else above
        return self.begun

    def _frame(self, at: int) -> tuple[Frame, int] | None:
        """Return the frame at `at` and where the next begins; None where it is not whole yet."""
        end = self._held.find(b"\n", at, at + HEAD)
        if end < 0:
            if len(self._held) - at >= HEAD:
                raise NoFrame(f"{bytes(self._held[at : at + HEAD])!r} is no frame's head")
            return None
        try:
            number, offset, length = map(int, self._held[at:end].split())
        except ValueError as error:
            raise NoFrame(f"{bytes(self._held[at:end])!r} is no frame's head") from error
        behind = end + 1 + length
        if behind > len(self._held):
            return None
        return Frame(number, offset, bytes(self._held[end + 1 : behind])), behind
