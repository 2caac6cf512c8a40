"""PURE: the levels of a series, one over the other. Each has about a sixteenth of the points of the one below it.

The levels hold points, not means: the first, least, greatest and last of BUCKET, and the first and last of them that
are not finite. Turned down: rows of (count, sum, least, greatest) a bucket, which need a second format and a second
reader, and draw extremes at the wrong x.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from .packing import Column
from .thinning import cut, picked

BUCKET = 64  # points
FULL = 512  # points, from which on they are as many as a level has in one place
LARGEST = 1024  # points of one chunk


def pieces(column: Column) -> Iterator[Column]:
    """Yield a column in parts of at most LARGEST points, about as long as each other."""
    count = len(column.xs)
    ends = np.linspace(0, count, -(-count // LARGEST) + 1).astype(int).tolist()
    for first, end in pairwise(ends):
        yield cut(column, first, end)


def above(column: Column) -> Column:
    """Return what the next level has of a column."""
    return picked(column, np.arange(0, len(column.xs), BUCKET))


def tower(column: Column) -> Iterator[tuple[int, bool, Column]]:
    """Yield (level, loose, points) of the chunks of a whole series."""
    level = 0
    while len(column.xs) >= FULL:
        for piece in pieces(column):
            yield level, False, piece
        column, level = above(column), level + 1
    yield level, True, column
