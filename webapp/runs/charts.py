"""All curves of a run page at once, as of one cursor.

Over steps, a curve follows the lineage of attempts (see series.read); what an attempt trained beyond the step
that a later one went on from is its `tail`, drawn faintly. Curves over time are those of the newest attempt.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from typing import Any

from training.spec.schedule import learning_rates

from . import series
from .models import Attempt, Run, Series
from .samples import Tails

MAX_POINTS = 10_000
MEMORY = re.compile(r"node\d+/ram_(used|total)|node\d+/gpu\d+/(used|total)")  # of what is over time, all that is drawn
PLANNED = "planned/learning_rate"
Pair = list[Any]  # [x, value as JSON carries it]


def picture(run: Run, count: int, names: Collection[str] = ()) -> dict[str, Any]:
    """Return {"cursor", "series": {name: {"axis", "points": [[x, value]...], "tail": [...]}}} of the series named.

    Where none is named, of all over steps and of memory: what a page draws first.

    The cursor is read first, so every point past it is in a later batch; a point may be in both.
    """
    run.refresh_from_db(fields=["journal"])
    newest = run.attempt
    rows: dict[str, list[Series]] = {}
    found = Series.objects.filter(attempt__run=run).order_by("name", "attempt__number")
    for row in found.filter(name__in=names) if names else found:
        if names or row.axis == "step" or MEMORY.fullmatch(row.name):
            rows.setdefault(row.name, []).append(row)
    tails = Tails()
    drawn = {name: _curve(run, newest, those, count, tails) for name, those in rows.items()}
    curves = ({} if names and PLANNED not in names else {PLANNED: _planned(run)}) | drawn
    return {"cursor": run.journal, "series": {name: curve for name, curve in curves.items() if curve["points"]}}


def _planned(run: Run) -> dict[str, Any]:
    """The learning rate that the recipe plans, over all steps to come; drawn behind the real one."""
    points = learning_rates(run.parsed_recipe(), run.total_steps)
    return {"axis": "step", "points": [list(point) for point in points], "tail": []}


def _curve(run: Run, newest: Attempt | None, found: list[Series], count: int, tails: Tails) -> dict[str, Any]:
    axis = found[0].axis
    if axis == "time":
        own = found[-1] if newest is not None and found[-1].attempt_id == newest.pk else None
        return {
            "axis": axis,
            "points": _pairs(series.read_beyond(own, points=count, tails=tails)) if own else [],
            "tail": [],
        }
    spans = {span.attempt: span for span in series.lineage(run)}
    tail: list[Pair] = []
    for row in found:
        end = spans[row.attempt_id].upto if row.attempt_id in spans else -math.inf
        tail += _pairs(series.read_beyond(row, end, count)) if end < math.inf else []
    points = _pairs(series.read(run, found[0].name, count))
    return {"axis": axis, "points": points, "tail": sorted(tail, key=lambda pair: pair[0])}


def _pairs(reading: series.Reading | None) -> list[Pair]:
    return [list(pair) for pair in zip(reading.steps, reading.values, strict=True)] if reading else []
