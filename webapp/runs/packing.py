"""PURE: points and lines as bytes, many in one row.

Points: x in microseconds as differences, which mostly repeat, then the values as IEEE doubles, NaN and infinities too;
little-endian, deflated unless they are few: setting up zlib takes longer than all else that is done with those. Lines:
a JSON list, deflated. x is exact to a microsecond up to the year 2255.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

MICRO = 1_000_000
FAST = 1
FEW = 256  # points
PLAIN = b"\0"  # what zlib writes begins otherwise
Floats = NDArray[np.float64]


class Column(NamedTuple):
    """Points of a series: all x, and all values; as long as each other."""

    xs: Floats
    values: Floats

    @classmethod
    def of(cls, points: Iterable[tuple[float, float]]) -> Column:
        """Return (x, value) pairs, in their order."""
        pairs = np.array(list(points), dtype=np.float64).reshape(-1, 2)
        return cls(pairs[:, 0], pairs[:, 1])


def pack_points(points: Column | Iterable[tuple[float, float]]) -> bytes:
    """Return a column, or (x, value) pairs, as bytes."""
    column = points if isinstance(points, Column) else Column.of(points)
    ticks = np.rint(column.xs * MICRO).astype("<i8")
    ticks[1:] -= ticks[:-1].copy()
    raw = ticks.tobytes() + column.values.astype("<f8").tobytes()
    return zlib.compress(raw, FAST) if len(column.xs) > FEW else PLAIN + raw


def unpack_points(body: bytes) -> Column:
    """Return what pack_points took."""
    raw = body[1:] if body[:1] == PLAIN else zlib.decompress(body)
    half = len(raw) // 16
    ticks = np.frombuffer(raw, "<i8", half).cumsum()
    return Column(ticks / MICRO, np.frombuffer(raw, "<f8", half, half * 8).astype(np.float64))


def pack_texts(rows: Iterable[str]) -> bytes:
    """Return rows that are JSON already, as pack_samples does."""
    return zlib.compress(f"[{','.join(rows)}]".encode(), FAST)


def pack_samples(rows: Iterable[Sequence[Any]]) -> bytes:
    """Return rows of strict JSON as bytes."""
    return zlib.compress(json.dumps(list(rows), separators=(",", ":"), allow_nan=False).encode(), FAST)


def unpack_samples(body: bytes) -> list[list[Any]]:
    """Return what pack_samples took."""
    found: list[list[Any]] = json.loads(zlib.decompress(body))
    return found
