"""PURE: points and samples as bytes, many in one row.

Points: x in microseconds as differences, which mostly repeat, then the values as IEEE doubles, NaN and infinities too;
little-endian, deflated. Samples: a JSON list, deflated. x is exact to a microsecond up to the year 2255.
"""

from __future__ import annotations

import json
import sys
import zlib
from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import Any

MICRO = 1_000_000
WIDTH = 8  # bytes of a number
FAST = 1


def pack_points(points: Sequence[tuple[float, float]]) -> bytes:
    """Return (x, value) pairs, in their order, as bytes."""
    ticks = [round(x * MICRO) for x, _ in points]
    steps = array("q", [b - a for a, b in pairwise([0, *ticks])])
    return zlib.compress(_bytes(steps) + _bytes(array("d", [value for _, value in points])), FAST)


def unpack_points(body: bytes) -> tuple[list[float], array[float]]:
    """Return what pack_points took: all x, and all values."""
    raw = zlib.decompress(body)
    half = len(raw) // 2
    xs = [tick / MICRO for tick in accumulate(_numbers("q", raw[:half]))]
    return xs, _numbers("d", raw[half:])


def _bytes(numbers: array[Any]) -> bytes:
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


def _numbers(code: Any, raw: bytes) -> array[Any]:
    found: array[Any] = array(code, raw)
    if sys.byteorder == "big":
        found.byteswap()
    return found


def pack_samples(rows: Iterable[Sequence[Any]]) -> bytes:
    """Return rows of strict JSON as bytes."""
    return zlib.compress(json.dumps(list(rows), separators=(",", ":"), allow_nan=False).encode(), FAST)


def unpack_samples(body: bytes) -> list[list[Any]]:
    """Return what pack_samples took."""
    found: list[list[Any]] = json.loads(zlib.decompress(body))
    return found
