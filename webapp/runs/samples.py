"""Points of series: the chunks that lines were folded into, and those of lines that are events yet."""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Sequence

from training.spec.events import Kind, strict

from . import windows
from .columns import columns_of
from .models import Attempt, Event, Series
from .packing import Column
from .thinning import EMPTY, cut, inside, joined
from .windows import Wanted, Window

Point = tuple[float, float]
DRAWN = ("run_id", "attempt_id", "kind", "source", "at", "step", "data")  # of a line, for its figures
ALL = 1 << 62  # points
MOST_STEPS = 1 << 31  # that a row can say


class Tails:
    """The lines that are events yet, read once for each writer in an attempt, however many series are asked for.

    `names`: of which series; None: of all. Of lines over steps only those up to step `upto`: to look into lines is
    much of what a window takes, and most windows end before them.
    """

    def __init__(self, names: Container[str] | None = None, upto: float = math.inf) -> None:
        self.names, self.upto = names, upto
        self._read: dict[tuple[int, str], dict[tuple[str, str], Column]] = {}

    def of(self, wanted: Wanted) -> Column:
        """Return the points of one series, by rising x, in the part that is wanted."""
        node = wanted.name.partition("/")[0].removeprefix("node")
        columns = self._columns(wanted.attempt, f"node@{node}" if wanted.axis == "time" else "")
        return _part(wanted, columns.get((wanted.name, wanted.axis), EMPTY))

    def _columns(self, attempt: int, source: str) -> dict[tuple[str, str], Column]:
        if (found := self._read.get((attempt, source))) is None:
            rows = Event.objects.filter(attempt=attempt)
            if source:
                rows = rows.filter(source=source, kind=Kind.SAMPLE).order_by("seq")
            else:  # with the run, whose index has the kind
                run = Attempt.objects.filter(pk=attempt).values("run")[:1]
                rows = rows.filter(run=run, kind__in=[Kind.METRICS, Kind.EVALUATION]).order_by("number")
                if self.upto < MOST_STEPS:
                    rows = rows.filter(step__lte=math.floor(max(-1, self.upto)))
            found = self._read[attempt, source] = columns_of(rows.values_list(*DRAWN, named=True), self.names)
        return found


def columns(wanted: Sequence[Wanted], window: Window, tails: Tails | None = None) -> list[Column]:
    """Return the points of each series by rising x; one x is one point, the later line's.

    They are from the level that the window asks for, and some outside the window are among them.
    """
    tails = tails or Tails()
    newer = [tails.of(part) for part in wanted]  # first: what is folded in between is in both
    older = windows.stored(wanted, window)
    return [
        joined([*(_part(part, column) for column in older.get(part.series, ())), tail])
        for part, tail in zip(wanted, newer, strict=True)
    ]


def _part(part: Wanted, column: Column) -> Column:
    if part.after == -math.inf and part.upto == math.inf:
        return column
    return cut(column, inside(column, -math.inf, part.after)[1], inside(column, -math.inf, part.upto)[1])


def passages(row: Series) -> Iterator[Column]:
    """Yield every point that is kept of a series, by rising x, some ten thousands at a time."""
    tails, after = Tails(), -math.inf
    for upto in (*windows.rests(row), math.inf):
        yield columns([Wanted.of(row, after, upto)], Window(points=ALL), tails)[0]
        after = upto


def last_of(wanted: Wanted, tails: Tails | None = None) -> Point | None:
    """Return the point at the greatest x; of those in lines that are no events yet only where no such is there."""
    tail = (tails or Tails()).of(wanted)
    if len(tail.xs):
        return float(tail.xs[-1]), float(tail.values[-1])
    return windows.newest(wanted)


def first_of(wanted: Wanted) -> Point | None:
    """Return the point at the least x."""
    if found := windows.oldest(wanted):
        return found
    tail = Tails().of(wanted)
    return (float(tail.xs[0]), float(tail.values[0])) if len(tail.xs) else None


def last_values(attempt: int) -> dict[str, float | str]:
    """Return the last value of every series over time of an attempt."""
    tails, found = Tails(), dict[str, float | str]()
    for row in Series.objects.filter(attempt=attempt, axis="time"):
        if (value := newest(Wanted.of(row), tails)) is not None:
            found[row.name] = value
    return found


def newest(wanted: Wanted, tails: Tails | None = None) -> float | str | None:
    """Return a series' value at its greatest x, as JSON can carry it; None where it has none."""
    return _shown(last_of(wanted, tails))


def oldest(wanted: Wanted) -> float | str | None:
    """Return a series' value at its least x, as JSON can carry it; None where it has none."""
    return _shown(first_of(wanted))


def _shown(point: Point | None) -> float | str | None:
    found: float | str | None = strict(point[1]) if point else None
    return found
