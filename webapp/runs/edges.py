"""The points just outside a window, where none of them came with it: without them lines end short of its edges."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from . import windows
from .models import Chunk
from .packing import Column
from .samples import Point, Tails
from .thinning import joined
from .windows import Wanted, Window

Parts = Sequence[Wanted]
Ends = dict[int, Point]  # by the place of a curve


def with_ends(columns: Sequence[Column], parts: Sequence[Parts], window: Window, tails: Tails) -> list[Column]:
    """Return each column, whose curve has these parts, with the points next to the window.

    `tails`: of the same series, and at least as far as the window's end.
    """
    lower = _lower(columns, parts, window.low, tails) if window.low > -math.inf else {}
    upper = _upper(columns, parts, window.high, Tails(tails.names)) if window.high < math.inf else {}
    found = list(columns)
    for at in lower.keys() | upper.keys():
        found[at] = joined([Column.of(ends[at] for ends in (lower, upper) if at in ends), columns[at]])
    return found


def _lower(columns: Sequence[Column], parts: Sequence[Parts], low: float, tails: Tails) -> Ends:
    edge = math.nextafter(low, -math.inf)
    lacking = [at for at, column in enumerate(columns) if not len(column.xs) or column.xs[0] >= low]
    below = {
        at: [part._replace(upto=min(part.upto, edge)) for part in parts[at] if part.after < edge] for at in lacking
    }
    tail = _tails(below, tails)
    stored = _held(below, last__lt=low)

    def candidates(part: Wanted) -> Iterator[Point | None]:
        yield _point(tail[part], -1)
        if part.series in stored or part.upto < edge:
            yield windows.newest(part)

    return _chosen(max, below, candidates)


def _upper(columns: Sequence[Column], parts: Sequence[Parts], high: float, tails: Tails) -> Ends:
    lacking = [at for at, column in enumerate(columns) if not len(column.xs) or column.xs[-1] <= high]
    above = {
        at: [part._replace(after=max(part.after, high)) for part in parts[at] if part.upto > high] for at in lacking
    }
    tail = _tails(above, tails)
    stored = _held(above, last__gt=high)

    def candidates(part: Wanted) -> Iterator[Point | None]:
        yield _point(tail[part], 0)
        if part.series in stored or part.after > high:
            yield windows.oldest(part)

    return _chosen(min, above, candidates)


def _tails(parts: Mapping[int, Parts], tails: Tails) -> dict[Wanted, Column]:
    """Return what is events yet of each part. To be read before chunks: what is folded in between is in both."""
    return {part: tails.of(part) for found in parts.values() for part in found}


def _held(parts: Mapping[int, Parts], **beyond: float) -> set[int]:
    """Return which series have a chunk beyond the window: at the ends of a run, where pages look most, none has."""
    some = [part for found in parts.values() for part in found]
    if not some:
        return set()
    chunks = Chunk.objects.filter(series__in={part.series for part in some}, level__in={part.floor for part in some})
    return set(chunks.filter(**beyond).values_list("series", flat=True).distinct())


def _chosen(
    best: Callable[[Iterable[Point]], Point],
    parts: Mapping[int, Parts],
    candidates: Callable[[Wanted], Iterator[Point | None]],
) -> Ends:
    points = {at: [point for part in some for point in candidates(part) if point] for at, some in parts.items()}
    return {at: best(found) for at, found in points.items() if found}


def _point(column: Column, at: int) -> Point | None:
    return (float(column.xs[at]), float(column.values[at])) if len(column.xs) else None
