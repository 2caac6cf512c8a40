"""All curves of a run page at once, as of one cursor.

Of a run with several attempts, the newer attempt wins: an older one counts up to the step that the next
went on from, and its points beyond are its `tail`, drawn faintly. Time series are the newest attempt's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from .models import Attempt, Point, Run, Series

MAX_POINTS = 10_000
DRAWN = re.compile(
    r"loss|learning_rate|grad_norm|tokens_per_second|eval/loss|node\d+/ram_(used|total)|node\d+/gpu\d+/(used|total)"
)
Pair = list[Any]  # [x, value as JSON carries it]


def picture(run: Run, count: int) -> dict[str, Any]:
    """Return {"cursor", "series": {name: {"axis", "points": [[x, value]...], "tail": [...]}}}.

    The cursor is read first, so every point past it is in a later batch; a point may be in both.
    """
    run.refresh_from_db(fields=["journal"])
    attempts = list(run.attempts.select_related("resume_from").order_by("number"))
    wanted = [s for s in Series.objects.filter(attempt__in=attempts) if DRAWN.fullmatch(s.name)]
    names = sorted({s.name for s in wanted})
    curves = {name: _curve([s for s in wanted if s.name == name], attempts, count) for name in names}
    return {"cursor": run.journal, "series": {name: curve for name, curve in curves.items() if curve["points"]}}


def _curve(found: list[Series], attempts: list[Attempt], count: int) -> dict[str, Any]:
    axis = found[0].axis
    by_attempt = {series.attempt_id: series for series in found}
    if axis == "time":
        series = by_attempt.get(attempts[-1].pk)
        return {"axis": axis, "points": thin(pairs(series), count) if series else [], "tail": []}
    kept: list[Pair] = []
    tail: list[Pair] = []
    for attempt, following in zip(attempts, [*attempts[1:], None], strict=True):
        if attempt.pk not in by_attempt:
            continue
        ours = pairs(by_attempt[attempt.pk])
        end = _end(following, attempts[attempts.index(attempt) + 1 :])
        kept += [pair for pair in ours if pair[0] <= end]
        tail += [pair for pair in ours if pair[0] > end]
    return {"axis": axis, "points": thin(sorted(kept), count), "tail": thin(tail, count)}


def _end(following: Attempt | None, later: list[Attempt]) -> float:
    """Return the last step up to which an attempt counts: where any later attempt went on from."""
    starts = [attempt.resume_from.step if attempt.resume_from else 0 for attempt in later]
    return float(min(starts)) if following else float("inf")


def pairs(series: Series) -> list[Pair]:
    rows: Iterable[Point] = series.points.order_by("x").only("x", "value", "odd")
    return [[point.x, point.shown] for point in rows]


def thin(points: list[Pair], count: int) -> list[Pair]:
    """Return about `count` of `points`: of each stretch the least, the greatest and all that are not finite."""
    if len(points) <= count:
        return points
    width = -(-len(points) // max(1, count // 2))
    return [pair for i in range(0, len(points), width) for pair in _extremes(points[i : i + width])]


def _extremes(stretch: list[Pair]) -> list[Pair]:
    finite = [pair for pair in stretch if not isinstance(pair[1], str)]
    keep = [pair for pair in stretch if isinstance(pair[1], str)]
    if finite:
        keep += [min(finite, key=lambda pair: pair[1]), max(finite, key=lambda pair: pair[1])]
    return [pair for pair in stretch if any(pair is kept for kept in keep)]
