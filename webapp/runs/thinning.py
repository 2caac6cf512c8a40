"""PURE: fewer points that look the same: of each bucket of the axis the first, least, greatest and last.

Points that are not finite stay as well, since a break must be seen at every zoom: all of them while they are few, of
many the first and the last of each bucket. What stays are points as they were measured, never means of them, so what
was thinned can be thinned again and its extremes are still those of the whole: `levels` are made of that.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .packing import Column

PER_BUCKET = 4
FEW_ODD = 500  # of what isn't finite: as many stay, whatever the width
EMPTY = Column(np.empty(0), np.empty(0))
Places = NDArray[np.intp]


def joined(columns: Sequence[Column]) -> Column:
    """Return the points of all by rising x; of those at one x the one of the latest column."""
    if not columns:
        return EMPTY
    xs, values = columns[0] if len(columns) == 1 else (np.concatenate(part) for part in zip(*columns, strict=True))
    if (xs[1:] > xs[:-1]).all():
        return Column(xs, values)
    order = np.argsort(xs, kind="stable")
    xs, values = xs[order], values[order]
    latest = np.append(xs[1:] != xs[:-1], True)
    return Column(xs[latest], values[latest])


def cut(column: Column, first: int, end: int) -> Column:
    return Column(column.xs[first:end], column.values[first:end])


def thin(column: Column, points: int) -> Column:
    """Return at most about `points` of a column's points, which come by rising x: points / 4 buckets of equal width."""
    if len(column.xs) <= points:
        return column
    count = max(1, points // PER_BUCKET)
    width = (column.xs[-1] - column.xs[0]) / count or 1.0
    buckets = np.minimum(((column.xs - column.xs[0]) / width).astype(np.intp), count - 1)
    return picked(column, np.flatnonzero(np.diff(buckets, prepend=-1)), FEW_ODD)


def picked(column: Column, starts: Places, few_odd: int = 0) -> Column:
    """Return what stays of each bucket, `starts` being their first points; all of `few_odd` that aren't finite."""
    count = len(column.xs)
    sizes = np.diff(starts, append=count)
    bucket = np.repeat(np.arange(len(starts)), sizes)
    finite = np.isfinite(column.values)
    keep = np.zeros(count, bool)
    keep[starts] = keep[starts + sizes - 1] = True
    for extreme, never in ((np.minimum, np.inf), (np.maximum, -np.inf)):
        values = np.where(finite, column.values, never)
        best = extreme.reduceat(values, starts)[bucket]
        keep[_ends(np.flatnonzero(finite & (values == best)), bucket)[0]] = True
    odd = np.flatnonzero(~finite)
    for places in [odd] if len(odd) <= few_odd else _ends(odd, bucket):
        keep[places] = True
    return Column(column.xs[keep], column.values[keep])


def _ends(places: Places, bucket: Places) -> tuple[Places, Places]:
    """Return the first and the last of `places` in each bucket that has any."""
    of = bucket[places]
    return places[np.diff(of, prepend=-1) != 0], places[np.diff(of, append=-1) != 0]


def inside(column: Column, low: float, high: float) -> tuple[int, int]:
    """Return from which place to before which the points with low <= x <= high are."""
    return int(np.searchsorted(column.xs, low, "left")), int(np.searchsorted(column.xs, high, "right"))
