"""One `.distcp` file: the numbers of its pieces, read at their offsets, fed to the file's hash by whoever uses them."""

from __future__ import annotations

import io
import threading
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import torch

from ...spec.lint import Problem
from ..outcome import Damaged
from ..parts import Raw
from .archive import UNREADABLE, locate
from .boxes import Box
from .checked import OTHER, Checked


@dataclass(frozen=True)
class Piece:
    """A box of a tensor: where it starts, its extent, and the bytes in a file that hold it."""

    offset: tuple[int, ...]
    size: tuple[int, ...]
    file: str
    start: int
    length: int

    @cached_property
    def box(self) -> Box:
        return Box(self.offset, self.size)


class Shard:
    """A file with pieces. Any thread may read."""

    def __init__(self, path: Path, checked: Checked | None):
        self.path, self.checked = path, checked
        self._begins: dict[Piece, int | None] = {}
        self._loaded: tuple[Piece, torch.Tensor] | None = None
        self._lock = threading.Lock()

    def read(self, piece: Piece, at: int, out: torch.Tensor) -> list[Raw]:
        """Fill `out` with the piece's numbers from the one at index `at` on; return the bytes that were read."""
        begin = self._begin(piece, out.dtype)
        if begin is None:
            out.copy_(self._whole(piece, out.dtype).view(-1)[at : at + len(out)])
            return []
        start, view = piece.start + begin + at * out.itemsize, memoryview(out.view(torch.uint8).numpy())
        if self.checked is not None:
            self.checked.read_into(start, view)
            return [Raw(self.checked, start, view)]
        with self.path.open("rb", buffering=0) as file:
            file.seek(start)
            if file.readinto(view) != len(view):
                raise Damaged([Problem(self.path.name, f"ends within the piece at {piece.start}", OTHER)])
        return []

    def _begin(self, piece: Piece, dtype: torch.dtype) -> int | None:
        if piece not in self._begins:
            with self.path.open("rb") as file:
                begin = locate(Window(file, piece.start, piece.length), piece.size, dtype)  # type: ignore[arg-type]
            inside = begin is not None and begin + piece.box.count * dtype.itemsize <= piece.length
            self._begins[piece] = begin if inside else None
        return self._begins[piece]

    def _whole(self, piece: Piece, dtype: torch.dtype) -> torch.Tensor:
        """Let torch load a piece that is not laid out as `archive` knows it; the last one is kept for its next part."""
        with self._lock:
            if self._loaded is None or self._loaded[0] != piece:
                self._loaded = None
                with self.path.open("rb") as file:
                    found = _load(Window(file, piece.start, piece.length), f"{self.path.name} at {piece.start}")
                self._loaded = piece, _as_described(found, piece, dtype)
            return self._loaded[1]


def _as_described(found: object, piece: Piece, dtype: torch.dtype) -> torch.Tensor:
    if isinstance(found, torch.Tensor) and tuple(found.shape) == piece.size and found.dtype == dtype:
        return found.contiguous()
    what = f"{found.dtype} {list(found.shape)}" if isinstance(found, torch.Tensor) else "no tensor"
    raise Damaged([Problem(piece.file, f"at {piece.start}: holds {what}", OTHER)])


def _load(window: Window, where: str) -> object:
    try:
        return torch.load(window, map_location="cpu", weights_only=True)
    except UNREADABLE as error:
        why = str(error).strip().split("\n", 1)[0]
        raise Damaged([Problem(where, f"can't be read: {why}", OTHER)]) from error


class Window(io.RawIOBase):
    """The bytes [start, start + length) of an open file as a file of their own: no copy of a large piece."""

    def __init__(self, file: BinaryIO, start: int, length: int):
        self.file, self.start, self.length, self.at = file, start, length, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.at

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self.at, io.SEEK_END: self.length}[whence]
        self.at = base + offset
        return self.at

    def readinto(self, buffer: Any, /) -> int:
        view = memoryview(buffer).cast("B")[: max(0, self.length - self.at)]
        self.file.seek(self.start + self.at)
        count = self.file.readinto(view)  # type: ignore[attr-defined]
        self.at += count
        return int(count)
