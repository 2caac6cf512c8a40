"""PURE: fewer points that look the same: of each bucket of the axis the first, least, greatest and last.

Every point that is not finite stays as well: a break must be seen at every zoom. One pass, one bucket in memory.
In SQL the same takes a self-join on the bucket, which SQLite runs in minutes for a million points.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

Row = tuple[float, float | None, str]  # x; value, None where `odd` names one that is not finite
PER_BUCKET = 4


def thin(rows: Iterable[Row], low: float, width: float) -> Iterator[Row]:
    """Yield what stays of `rows`, which come by rising x from `low` on; buckets are `width` wide."""
    at = -1
    first = last = least = greatest = None
    low_value, high_value = math.inf, -math.inf
    odd: list[Row] = []
    for row in rows:
        bucket = int((row[0] - low) / width)
        if bucket != at:
            yield from _kept(first, least, greatest, last, *odd)
            at, first, least, greatest, odd = bucket, row, None, None, []
            low_value, high_value = math.inf, -math.inf
        last = row
        value = row[1]
        if value is None:
            odd.append(row)
        else:
            if value < low_value:
                least, low_value = row, value
            if value > high_value:
                greatest, high_value = row, value
    yield from _kept(first, least, greatest, last, *odd)


def _kept(*rows: Row | None) -> list[Row]:
    return sorted({row for row in rows if row is not None}, key=lambda row: row[0])
