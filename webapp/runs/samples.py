"""Series over time: the chunks that samples were folded into, and those that are events yet."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from training.spec.events import Kind, strict

from .folding import columns_of
from .models import Chunk, Event, Series
from .packing import unpack_points
from .thinning import Row

Columns = dict[str, dict[float, float]]  # of each series {x: value}


class Wanted(NamedTuple):
    """A series, and the part of it that is asked for: after < x <= upto."""

    series: int
    attempt: int
    name: str
    after: float = -math.inf
    upto: float = math.inf


class Tails:
    """The samples that are events yet, read once for each node of an attempt, however many series are asked for."""

    def __init__(self) -> None:
        self._read: dict[tuple[int, str], Columns] = {}

    def of(self, attempt: int, name: str) -> dict[float, float]:
        """Return {x: value} of one series."""
        return self.columns(attempt, f"node@{name.partition('/')[0].removeprefix('node')}").get(name, {})

    def columns(self, attempt: int, source: str) -> Columns:
        """Return those of all series of one node."""
        if (found := self._read.get((attempt, source))) is None:
            events = Event.objects.filter(attempt=attempt, source=source, kind=Kind.SAMPLE).order_by("seq")
            found = self._read[attempt, source] = columns_of(events.iterator())
        return found


def rows(wanted: Iterable[Wanted], tails: Tails | None = None) -> list[Row]:
    """Return the points of these series by rising x; one x is one point, the later line's."""
    tails, found = tails or Tails(), dict[float, float]()
    for part in wanted:
        tail = tails.of(part.attempt, part.name)  # before the chunks: what is folded in between is in both
        found.update(_stored(part))
        found.update((x, value) for x, value in tail.items() if part.after < x <= part.upto)
    return [_row(x, found[x]) for x in sorted(found)]


def _stored(part: Wanted) -> Iterator[tuple[float, float]]:
    chunks = Chunk.objects.filter(series=part.series)
    if part.after > -math.inf:
        chunks = chunks.filter(last__gt=part.after)
    if part.upto < math.inf:
        chunks = chunks.filter(first__lte=part.upto)
    for body, first, last in chunks.order_by("last", "pk").values_list("body", "first", "last"):
        pairs = zip(*unpack_points(bytes(body)), strict=True)
        whole = part.after < first and last <= part.upto
        yield from pairs if whole else (pair for pair in pairs if part.after < pair[0] <= part.upto)


def _row(x: float, value: float) -> Row:
    return (x, value, "") if math.isfinite(value) else (x, None, str(strict(value)))


def last_values(attempt: int) -> dict[str, float | str]:
    """Return the last value of every series over time of an attempt."""
    tails, found = Tails(), dict[str, float | str]()
    for pk, name in Series.objects.filter(attempt=attempt, axis="time").values_list("pk", "name"):
        if (value := newest(Wanted(pk, attempt, name), tails)) is not None:
            found[name] = value
    return found


def newest(wanted: Wanted, tails: Tails | None = None) -> float | str | None:
    """Return a series' value at its greatest x, as JSON can carry it; None where it has none."""
    points = (tails or Tails()).of(wanted.attempt, wanted.name)
    if not points:
        last = Chunk.objects.filter(series=wanted.series).order_by("-last").first()
        points = dict(zip(*unpack_points(bytes(last.body)), strict=True)) if last else {}
    found: float | str | None = strict(points[max(points)]) if points else None
    return found
