"""Read a safetensors file at offsets, without mapping it: a limit on address space is no obstacle.

The format: https://huggingface.co/docs/safetensors/index#format (header's length, header, numbers).
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import torch

MOST = 100_000_000  # bytes of a header, the format's own limit
CODES = {
    torch.bfloat16: "BF16", torch.float16: "F16", torch.float32: "F32", torch.float64: "F64", torch.bool: "BOOL",
    torch.int64: "I64", torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8",
}  # fmt: skip
DTYPES = {code: dtype for dtype, code in CODES.items()}


class Unreadable(ValueError):
    """A file that is no safetensors file, or has numbers of a kind that this code doesn't know."""


@dataclass(frozen=True)
class Entry:
    """A tensor in a file: its numbers begin at byte `start`."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    start: int


class TensorFile:
    """`tensors` by name, in the order of the header. Nothing else is read before it is asked for."""

    def __init__(self, path: Path):
        self.path = path
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            size = os.fstat(file.fileno()).st_size
            if length > min(MOST, size - 8):
                raise Unreadable(f"{path.name} is no safetensors file")
            header = _parsed(file.read(length), path)
        self.tensors = {n: _entry(path, n, e, 8 + length, size) for n, e in header.items() if n != "__metadata__"}

    def read(self, name: str, start: int, out: torch.Tensor) -> torch.Tensor:
        """Fill `out`, a run of numbers of the tensor's dtype, with those from index `start` on; return it."""
        entry = self.tensors[name]
        view = memoryview(out.view(torch.uint8).numpy())
        at = entry.start + start * entry.dtype.itemsize
        with self.path.open("rb", buffering=0) as file:
            while view:
                if not (count := os.preadv(file.fileno(), [view], at)):
                    raise Unreadable(f"{self.path.name} ends within {name}")
                view, at = view[count:], at + count
        return out


def _parsed(text: bytes, path: Path) -> dict[str, Any]:
    try:
        header = json.loads(text)
    except ValueError as error:
        raise Unreadable(f"{path.name} has no readable header: {error}") from error
    if not isinstance(header, dict):
        raise Unreadable(f"{path.name} has no readable header")
    return header


def _entry(path: Path, name: str, entry: Any, base: int, size: int) -> Entry:
    try:
        code, shape, (begin, end) = entry["dtype"], tuple(map(int, entry["shape"])), map(int, entry["data_offsets"])
    except (KeyError, TypeError, ValueError) as error:
        raise Unreadable(f"{path.name} describes {name} as {entry}") from error
    if (dtype := DTYPES.get(code)) is None:
        raise Unreadable(f"{name} is stored as {code}")
    if begin < 0 or base + end > size or end - begin != prod(shape) * dtype.itemsize:
        raise Unreadable(f"{path.name} is cut short, or says so of {name}")
    return Entry(shape, dtype, base + begin)
