"""Reads part of a stored tensor straight to where it belongs, changing the number format on the way.

Whatever the tensor's size, no more than one piece of PIECE bytes is held beside the target.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import torch

from .stored import Stored

PIECE = 16 << 20  # bytes; large enough for a network file system, small beside any tensor that matters


def spans(stored: Stored, rows: range) -> Iterator[tuple[int, int]]:
    """Yield where `rows` of the tensor (along its first dimension; a scalar is one row) lie in the file, in pieces."""
    at, end = (stored.offset + n * stored.row_bytes for n in (rows.start, rows.stop))
    while at < end:
        yield at, min(at + PIECE, end)
        at += PIECE


class Files:
    """Keeps the files open that it has read from, until close()."""

    def __init__(self) -> None:
        self._open: dict[Path, int] = {}

    def read(self, stored: Stored, at: int, into: torch.Tensor) -> None:
        """Fill `into` (bytes, on the host) from offset `at`. Raises OSError where the file ends early."""
        view, got = memoryview(into.numpy()), 0
        while got < len(view):
            count = os.preadv(self._file(stored.path), [view[got:]], at + got)
            if not count:
                raise OSError(f"{stored.path} ends before {stored.key} does")
            got += count

    def _file(self, path: Path) -> int:
        if path not in self._open:
            self._open[path] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        return self._open[path]

    def close(self) -> None:
        for file in self._open.values():
            os.close(file)
        self._open.clear()


class Target:
    """Memory of any number format on any device, filled from front to back with a stored tensor's bytes."""

    def __init__(self, stored: Stored, into: torch.Tensor):
        self._dtype, self._flat, self._done = stored.dtype, into.view(-1), 0

    def append(self, piece: torch.Tensor) -> None:
        values = piece.view(self._dtype)
        self._flat[self._done : self._done + values.numel()].copy_(values)
        self._done += values.numel()

    def check_full(self) -> None:
        assert self._done == self._flat.numel(), (self._done, self._flat.numel())


def read_rows(files: Files, stored: Stored, rows: range, into: torch.Tensor, buffer: torch.Tensor) -> None:
    """Copy `rows` of the tensor into `into`, which is contiguous. `buffer`: PIECE bytes to pass through."""
    target = Target(stored, into)
    for start, stop in spans(stored, rows):
        piece = buffer[: stop - start]
        files.read(stored, start, piece)
        target.append(piece)
    target.check_full()


def new_buffer() -> torch.Tensor:
    return torch.empty(PIECE, dtype=torch.uint8)
