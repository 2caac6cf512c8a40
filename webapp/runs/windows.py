"""A window of series that lie in chunks: from the level whose points there are enough, and not too many."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import count
from operator import or_
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import Q, QuerySet

from .models import Chunk, Series
from .packing import Column, unpack_points
from .thinning import cut, inside, joined, thin
from .tower import LARGEST

DEPTH = 16  # points read for each that is asked for, at most: about a level's share of the one below


AT_ONCE = 200  # places asked for
PASSAGE = 32  # chunks
FEW = 8  # chunks that end or begin at one place, of all levels, are fewer
CHUNKS = Chunk._meta.db_table
TOUCHING = "last >= %s AND first <= %s"  # a span
Point = tuple[float, float]
Span = tuple[float, float]


class Window(NamedTuple):
    """low <= x <= high, in about `points` points."""

    low: float = -math.inf
    high: float = math.inf
    points: int = 1500

    def drawn(self, column: Column) -> Column:
        """Return what of a column is in the window, thinned, with the points just outside on both sides."""
        first, end = inside(column, self.low, self.high)
        found = thin(cut(column, first, end), self.points)
        before, behind = cut(column, max(0, first - 1), first), cut(column, end, end + 1)
        return joined([before, found, behind])


class Wanted(NamedTuple):
    """A series, and the part of it that counts: after < x <= upto. `floor`: the lowest level that is whole."""

    series: int
    attempt: int
    name: str
    axis: str
    floor: int = 0
    after: float = -math.inf
    upto: float = math.inf

    @classmethod
    def of(cls, row: Series, after: float = -math.inf, upto: float = math.inf) -> Wanted:
        return cls(row.pk, row.attempt_id, row.name, row.axis, row.floor, after, upto)


def stored(wanted: Sequence[Wanted], window: Window) -> dict[int, list[Column]]:
    """Return the chunks of each series that touch the window, oldest first; of those that have any."""
    found: dict[int, list[Column]] = defaultdict(list)
    for (after, upto), parts in _by_span(wanted).items():
        span = max(after, window.low), min(upto, window.high)
        where, values = _on(_levels(parts, span, window.points * DEPTH + 2 * LARGEST), span)
        sql = f"SELECT series_id, body FROM {CHUNKS} WHERE {where} ORDER BY loose, level DESC, id"  # noqa: S608
        for series, body in _asked(sql, values):
            found[series].append(unpack_points(bytes(body)))
    return found


def _by_span(wanted: Iterable[Wanted]) -> dict[tuple[float, float], list[Wanted]]:
    found: dict[tuple[float, float], list[Wanted]] = defaultdict(list)
    for part in wanted:
        found[part.after, part.upto].append(part)
    return found


def touching(series: Collection[int], low: float, high: float) -> QuerySet[Chunk]:
    chunks = Chunk.objects.filter(series__in=series)
    if low > -math.inf:
        chunks = chunks.filter(last__gte=low)
    return chunks.filter(first__lte=high) if high < math.inf else chunks


def _levels(parts: Sequence[Wanted], span: Span, most: int) -> dict[int, list[int]]:
    """Return the series by the level to read: the lowest that has at most `most` points there, in whole chunks.

    Level 0 is counted where level 1 has few enough, so that what is counted depends on the window alone. It may have
    none: a small window can lie between the last point of one of its chunks and the first of the next.
    """
    counts: dict[int, dict[int, int]] = defaultdict(dict)
    _count(counts, [part.series for part in parts], "level >= 1", span)
    near = [
        part.series
        for part in parts
        if part.floor == 0 and (held := counts[part.series]) and held.get(1, 0) <= most  # not held: all is in level 0
    ]
    if near:
        _count(counts, near, "level = 0", span)
    found: dict[int, list[int]] = defaultdict(list)
    for part in parts:
        held = counts[part.series]
        fitting = (level for level in sorted(held) if held[level] <= most)
        found[next(fitting, max(held, default=part.floor))].append(part.series)
    return found


def _count(counts: dict[int, dict[int, int]], series: Sequence[int], levels: str, span: Span) -> None:
    where = f"{_among(series)} AND {levels} AND {TOUCHING} GROUP BY series_id, level"
    rows = _asked(f"SELECT series_id, level, SUM(count) FROM {CHUNKS} WHERE {where}", [*series, *span])  # noqa: S608
    for one, level, points in rows:
        counts[one][level] = points


def _on(levels: Mapping[int, Sequence[int]], span: Span) -> tuple[str, list[float]]:
    """Return the condition of what is read of each level, and its values."""
    some = [f"{_among(series)} AND (level = %s OR (level < %s AND loose))" for series in levels.values()]
    values = [value for level, series in levels.items() for value in (*series, level, level)]
    return f"({' OR '.join(some)}) AND {TOUCHING}", [*values, *span]


def _among(series: Sequence[int]) -> str:
    return f"series_id IN ({', '.join(['%s'] * len(series))})"


def _asked(sql: str, values: Sequence[float]) -> list[Any]:
    """As text: to put these questions together from objects took a fifth of a window's time."""
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return list(cursor.fetchall())


def rests(row: Series) -> list[float]:
    """Return the x at which to rest on the way through a series, so that a bounded number of chunks lies between."""
    chunks = Chunk.objects.filter(series=row, level=row.floor).order_by("last")
    return list(chunks.values_list("last", flat=True))[PASSAGE - 1 :: PASSAGE]


def _from(chunks: QuerySet[Chunk], end: str) -> Iterator[tuple[float, bytes]]:
    """Yield (`end`, body) in its order, a few at a time: the index alone is sorted, not every body."""
    order = (end, "-level", "pk")
    for start in count(0, FEW):
        some = chunks.order_by(*order).values("pk")[start : start + FEW]
        rows = list(Chunk.objects.filter(pk__in=some).order_by(*order).values_list(end.lstrip("-"), "body"))
        yield from rows
        if len(rows) < FEW:
            return


def newest(wanted: Wanted) -> Point | None:
    """Return the last of the points that are in chunks."""
    chunks = touching([wanted.series], wanted.after, wanted.upto)
    found: Point | None = None
    for last, body in _from(chunks, "-last"):
        if found and last < found[0]:
            break
        column = unpack_points(bytes(body))
        at = inside(column, -math.inf, wanted.upto)[1] - 1
        if at >= 0 and (found is None or column.xs[at] >= found[0]):
            found = float(column.xs[at]), float(column.values[at])
    return found if found and found[0] > wanted.after else None


def oldest(wanted: Wanted) -> Point | None:
    """Return the first of the points that are in chunks."""
    chunks = touching([wanted.series], wanted.after, wanted.upto)
    found: Point | None = None
    for first, body in _from(chunks, "first"):
        if found and first > found[0]:
            break
        column = unpack_points(bytes(body))
        at = inside(column, -math.inf, wanted.after)[1]
        if at < len(column.xs) and (found is None or column.xs[at] <= found[0]):
            found = float(column.xs[at]), float(column.values[at])
    return found if found and found[0] <= wanted.upto else None


def at(series: Mapping[int, Collection[float]]) -> dict[tuple[int, float], float]:
    """Return the values at these x of these series, of those that are in chunks, by (series, x)."""
    places = [(one, x) for one, xs in series.items() for x in xs]
    found: dict[tuple[int, float], float] = {}
    for some in range(0, len(places), AT_ONCE):
        asked = [Q(series=one, first__lte=x, last__gte=x) for one, x in places[some : some + AT_ONCE]]
        rows = Chunk.objects.filter(reduce(or_, asked), level=0).order_by("-loose", "-pk")
        for one, body in rows.values_list("series", "body"):
            column = unpack_points(bytes(body))
            for x in series[one]:
                first, end = inside(column, x, x)
                if end > first:
                    found.setdefault((one, x), float(column.values[first]))
    return found
