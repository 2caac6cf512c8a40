"""Read a run's series over all its attempts, at any zoom.

The merged view follows the lineage: the newest attempt from its resume step on, before that the attempt it was
resumed from, and so on. What an attempt trained past the checkpoint that was taken up is not in it. Series over
time (memory, load) are facts of the hosts, whichever attempt was trained: all attempts' are in.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from django.db.models import QuerySet

from training.spec.events import strict

from . import samples
from .edges import with_ends
from .models import Attempt, Run, Series
from .packing import Column
from .readings import AT
from .samples import Tails
from .thinning import joined
from .windows import Wanted, Window

Shown = float | str  # a value that is not finite is its name
Origin = tuple[int | None, int | None]  # the attempt and the step that an attempt went on from


@dataclass(frozen=True)
class Reading:
    """`steps` are optimizer steps, or seconds since the epoch. A value that is not finite is its name."""

    name: str
    axis: str
    steps: list[float]
    values: list[Shown]


@dataclass(frozen=True)
class Span:
    """The part of an attempt that is in the merged view: after < step <= upto."""

    attempt: int
    after: float
    upto: float


def named(rows: QuerySet[Series], names: Collection[str]) -> QuerySet[Series]:
    """Return those of these names. None has a NUL, and PostgreSQL refuses to look for one."""
    return rows.filter(name__in=[name for name in names if "\0" not in name])


def lineage(run: Run) -> list[Span]:
    """Return the spans of optimizer steps, newest attempt first."""
    return lineages([run.pk])[run.pk]


def lineages(runs: Collection[int]) -> dict[int, list[Span]]:
    """Return the spans of each run."""
    origins: dict[int, dict[int, Origin]] = {run: {} for run in runs}
    rows = Attempt.objects.filter(run__in=runs).order_by("-number")
    for run, attempt, *origin in rows.values_list("run", "pk", "resume_from__attempt", "resume_from__step"):
        origins[run][attempt] = (origin[0], origin[1])
    return {run: _spans(found) for run, found in origins.items()}


def _spans(origins: Mapping[int, Origin]) -> list[Span]:
    """Return the spans of attempts, given the newest first."""
    found: list[Span] = []
    attempt, upto = next(iter(origins), None), math.inf
    while attempt is not None and attempt in origins:
        before, step = origins[attempt]
        after = -math.inf if step is None else float(step)
        found.append(Span(attempt, after, upto))
        attempt, upto = before, min(upto, after)
    return found


def names(run: Run) -> list[tuple[str, str]]:
    """Return (name, axis) of every series of the run, sorted."""
    return sorted(set(Series.objects.filter(attempt__run=run).values_list("name", "axis")))


def last_values(run: Run) -> dict[str, Shown | None]:
    """Return the last value of every series, in the merged view."""
    found: dict[str, Shown | None] = {}
    for attempt in run.attempts.order_by("number").values_list("pk", flat=True):
        found |= samples.last_values(attempt)
    return dict(sorted((last_metrics(run) | found).items()))


def last_metrics(run: Run) -> dict[str, Shown | None]:
    """Return the last value of every metric over steps: loss, learning rate, `eval/...`."""
    found: dict[str, Shown | None] = {}
    tails = Tails()
    for span in lineage(run):
        for row in Series.objects.filter(attempt=span.attempt, axis="step").exclude(name=AT):
            if row.name not in found and (value := _last(row, span, tails)) is not None:
                found[row.name] = value
    return dict(sorted(found.items()))


def _last(row: Series, span: Span, tails: Tails) -> Shown | None:
    """Return the last value in the span: as the row has it, unless a later attempt went on from before that."""
    if row.last_x is None or row.last_x <= span.after:
        return None
    if row.last_x <= span.upto:
        return row.last
    return samples.newest(Wanted.of(row, span.after, span.upto), tails)


def ends(run: Run, name: str) -> tuple[Shown | None, Shown | None]:
    """Return the run's first value of a metric, and the last one of its newest attempt that has any."""
    rows = Series.objects.filter(attempt__run=run, name=name, last_x__isnull=False).order_by("attempt__number")
    held = list(rows)
    return (samples.oldest(Wanted.of(held[0])), held[-1].last) if held else (None, None)


def read(run: Run, name: str, points: int = 1500, low: float = -math.inf, high: float = math.inf) -> Reading | None:
    """Return the window low <= x <= high of a series in at most about `points` points; None: no such series.

    The axis is cut into points / 4 buckets; of each the first, least, greatest and last point stay, so a spike
    of one step is seen at every zoom; of those that are not finite see thinning. The points just outside come too.
    """
    rows = list(Series.objects.filter(attempt__run=run, name=name).order_by("attempt"))
    return read_all([merged(rows, lineage(run))], Window(low, high, points))[0] if rows else None


@dataclass(frozen=True)
class Curve:
    """What is read as one: some parts, of attempts, of one series."""

    name: str
    axis: str
    parts: list[Wanted]


def merged(rows: Sequence[Series], spans: Iterable[Span]) -> Curve:
    """Return the merged view of a series, `rows` being those of its attempts."""
    name, axis = rows[0].name, rows[0].axis
    if axis == "time":
        return Curve(name, axis, [Wanted.of(row) for row in rows])
    of = {span.attempt: span for span in spans}
    held = [(row, of[row.attempt_id]) for row in rows if row.attempt_id in of]
    return Curve(name, axis, [Wanted.of(row, span.after, span.upto) for row, span in held])


def read_all(curves: Sequence[Curve], window: Window) -> list[Reading]:
    """Return the window of each curve, thinned; in a number of questions that grows with the attempts alone."""
    tails = Tails({curve.name for curve in curves}, window.high)
    columns = iter(samples.columns([part for curve in curves for part in curve.parts], window, tails))
    whole = [joined([next(columns) for _ in curve.parts]) for curve in curves]
    drawn = with_ends(whole, [curve.parts for curve in curves], window, tails)
    return [_reading(curve, window.drawn(column)) for curve, column in zip(curves, drawn, strict=True)]


def _reading(curve: Curve, found: Column) -> Reading:
    steps = (found.xs.astype(np.int64) if curve.axis == "step" else found.xs).tolist()
    return Reading(curve.name, curve.axis, steps, shown(found))


def shown(column: Column) -> list[Shown]:
    """Return the values as JSON can carry them."""
    values: list[Shown] = column.values.tolist()
    for at in np.flatnonzero(~np.isfinite(column.values)):
        values[at] = strict(values[at])
    return values
