"""Points are added to series, and the levels of a series (see tower) grow with them.

New chunks lie loose on level 0. When LOOSE of them are there they become one; from FULL points on that one is whole
for good, and what the next level has of it becomes a loose chunk there, and so on. So the points of
a series at level n are the whole chunks of level n and the loose ones of n and below, which are never more than LOOSE
a level: a window at any zoom is a bounded number of chunks, and a point is written a few times in all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from typing import Any

from django.db.models import Count

from .each import insert_each
from .models import Chunk
from .packing import Column, pack_points, unpack_points
from .thinning import joined
from .tower import FULL, above, pieces

LOOSE = 16  # chunks
COLUMNS = ("series_id", "level", "loose", "first", "last", "count", "body")
Row = tuple[Any, ...]


def add(columns: dict[int, Column]) -> None:
    """Add points to series, each by rising x and not empty; in the caller's transaction, which holds the run's lock."""
    insert_each(Chunk, COLUMNS, [row(series, column) for series, column in columns.items()])
    series: Collection[int] = columns.keys()
    level = 0
    while series:
        series = _merge(series, level)
        level += 1


def row(series: int, column: Column, level: int = 0, *, loose: bool = True) -> Row:
    """Return the COLUMNS of a chunk."""
    return series, level, loose, float(column.xs[0]), float(column.xs[-1]), len(column.xs), pack_points(column)


def _merge(series: Collection[int], level: int) -> set[int]:
    """Merge the loose chunks of those series that have many; return which of them have a new one on the next level."""
    rows, merged, higher = list[Row](), list[int](), set[int]()
    for one, found in _crowded(series, level).items():
        merged += [pk for pk, _ in found]
        column = joined([column for _, column in found])
        if len(column.xs) < FULL:
            rows.append(row(one, column, level))
        else:
            rows += _whole(one, column, level)
            higher.add(one)
    gone = Chunk.objects.filter(pk__in=merged)
    gone._raw_delete(gone.db)  # nothing refers to chunks
    insert_each(Chunk, COLUMNS, rows)
    return higher


def _crowded(series: Collection[int], level: int) -> dict[int, list[tuple[int, Column]]]:
    """Return the loose chunks, by their ids, of each series that has many, oldest first."""
    loose = Chunk.objects.filter(series__in=series, level=level, loose=True)
    many = loose.values("series").annotate(held=Count("pk")).filter(held__gte=LOOSE).values_list("series", flat=True)
    found: dict[int, list[tuple[int, Column]]] = defaultdict(list)
    if crowded := list(many):
        rows = loose.filter(series__in=crowded).order_by("pk")
        for one, pk, body in rows.values_list("series", "pk", "body"):
            found[one].append((pk, unpack_points(bytes(body))))
    return found


def _whole(series: int, column: Column, level: int) -> Iterator[Row]:
    """Yield the chunks that these points are for good, and the loose one that they become on the next level."""
    for piece in pieces(column):
        yield row(series, piece, level, loose=False)
    yield row(series, above(column), level + 1)
