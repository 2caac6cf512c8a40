"""Read a run's series over all its attempts, at any zoom.

The merged view follows the lineage: the newest attempt from its resume step on, before that the attempt it was
resumed from, and so on. What an attempt trained past the checkpoint that was taken up is not in it. Series over
time (memory, load) are facts of the hosts, whichever attempt was trained: all attempts' are in.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from django.db import connection
from django.db.models import OuterRef, Subquery

from . import samples
from .models import Point, Run, Series
from .samples import Tails, Wanted
from .thinning import PER_BUCKET, Row, thin

FETCHED = 5000


@dataclass(frozen=True)
class Reading:
    """`steps` are optimizer steps, or seconds since the epoch. A value that is not finite is its name."""

    name: str
    axis: str
    steps: list[float]
    values: list[float | str]


@dataclass(frozen=True)
class Span:
    """The part of an attempt that is in the merged view: after < step <= upto."""

    attempt: int
    after: float
    upto: float


def lineage(run: Run) -> list[Span]:
    """Return the spans of optimizer steps, newest attempt first."""
    attempts = {a.pk: a for a in run.attempts.select_related("resume_from")}
    found: list[Span] = []
    attempt = max(attempts.values(), key=lambda a: a.number, default=None)
    upto = math.inf
    while attempt is not None:
        start = attempt.resume_from
        after = float(start.step) if start else -math.inf
        found.append(Span(attempt.pk, after, upto))
        attempt = attempts.get(start.attempt_id) if start else None
        upto = min(upto, after)
    return found


def names(run: Run) -> list[tuple[str, str]]:
    """Return (name, axis) of every series of the run, sorted."""
    return sorted(set(Series.objects.filter(attempt__run=run).values_list("name", "axis")))


def last_values(run: Run) -> dict[str, float | str | None]:
    """Return the last value of every series, in the merged view."""
    found: dict[str, float | str | None] = {}
    for attempt in run.attempts.order_by("number").values_list("pk", flat=True):
        found |= samples.last_values(attempt)
    return dict(sorted((last_metrics(run) | found).items()))


def last_metrics(run: Run) -> dict[str, float | str | None]:
    """Return the last value of every metric over steps: loss, learning rate, `eval/...`."""
    found: dict[str, float | str | None] = {}
    for span in lineage(run):
        points = Point.objects.filter(series=OuterRef("pk"), x__gt=_finite(span.after), x__lte=_finite(span.upto))
        newest = points.order_by("-x")
        rows = Series.objects.filter(attempt=span.attempt, axis="step").annotate(
            x=Subquery(newest.values("x")[:1]),
            value=Subquery(newest.values("value")[:1]),
            odd=Subquery(newest.values("odd")[:1]),
        )
        for row in rows:
            if row.x is not None:
                found.setdefault(row.name, row.odd or row.value)
    return dict(sorted(found.items()))


def _finite(x: float) -> float:
    """Databases disagree on infinity too."""
    return max(-1e300, min(1e300, x))


def read(run: Run, name: str, points: int = 1500) -> Reading | None:
    """Return the series in at most about `points` points, and every one that is not finite; None: no such series.

    The axis is cut into points / 4 buckets; of each the first, least, greatest and last point stay, so a spike
    of one step is seen at every zoom.
    """
    parts = list(Series.objects.filter(attempt__run=run, name=name).values_list("pk", "attempt_id", "axis"))
    if not parts:
        return None
    axis = parts[0][2]
    if axis == "time":
        rows = _thinned(samples.rows(Wanted(pk, attempt, name) for pk, attempt, _ in sorted(parts)), points)
    else:
        spans = {span.attempt: span for span in lineage(run)}
        where = [(pk, spans[attempt]) for pk, attempt, _ in parts if attempt in spans]
        rows = _rows(where, points) if where else []
    steps = [int(x) if axis == "step" else x for x, _, _ in rows]
    return Reading(name, axis, steps, _shown(rows))


def read_beyond(series: Series, after: float = -math.inf, points: int = 1500, tails: Tails | None = None) -> Reading:
    """Return one attempt's own points past `after`, thinned alike: what it trained in vain, or its time series.

    `tails`: of all series that are read for one picture.
    """
    if series.axis == "time":
        rows = _thinned(samples.rows([Wanted(series.pk, series.attempt_id, series.name, after)], tails), points)
    else:
        rows = _rows([(series.pk, Span(series.attempt_id, after, math.inf))], points)
    return Reading(series.name, series.axis, [x for x, _, _ in rows], _shown(rows))


def _thinned(rows: list[Row], points: int) -> list[Row]:
    return rows if len(rows) <= points else list(thin(rows, rows[0][0], _width(rows[0][0], rows[-1][0], points)))


def _width(low: float, high: float, points: int) -> float:
    return (high - low) / max(1, points // PER_BUCKET) or 1.0


def _shown(rows: list[Row]) -> list[float | str]:
    return [odd or cast(float, value) for _, value, odd in rows]


def _rows(where: list[tuple[int, Span]], points: int) -> list[Row]:
    table = connection.ops.quote_name(Point._meta.db_table)
    condition = " OR ".join("(series_id = %s AND x > %s AND x <= %s)" for _ in where)
    params = [p for pk, span in where for p in (pk, _finite(span.after), _finite(span.upto))]
    chosen = f"SELECT x, value, odd FROM {table} WHERE {condition}"  # noqa: S608  names of ours alone
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT COUNT(*), MIN(x), MAX(x) FROM ({chosen}) AS chosen", params)  # noqa: S608
        count, low, high = cursor.fetchone()
        if count <= points:
            cursor.execute(f"{chosen} ORDER BY x", params)
            return cursor.fetchall()
    with connection.chunked_cursor() as cursor:  # rows come as they are read, also from PostgreSQL
        cursor.execute(f"{chosen} ORDER BY x", params)
        return list(thin(_stream(cursor), low, _width(low, high, points)))


def _stream(cursor: Any) -> Iterator[Row]:
    while rows := cursor.fetchmany(FETCHED):
        yield from rows
