"""All curves of a run page at once, as of one cursor.

Over steps, a curve follows the lineage of attempts (see series.read); what an attempt trained beyond the step
that a later one went on from is its `tail`, drawn faintly. Curves over time are those of the newest attempt.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from typing import Any

from training.spec.schedule import learning_rates

from . import series
from .models import Run, Series
from .readings import AT
from .windows import Wanted, Window

MAX_POINTS = 10_000
MEMORY = re.compile(r"node\d+/ram_(used|total)|node\d+/gpu\d+/(used|total)")  # of what is over time, all that is drawn
SHARED = 60_000  # points of all curves over time in one picture
FEWEST = 200  # points of each of them
PLANNED = "planned/learning_rate"
Rows = dict[str, list[Series]]


def picture(run: Run, window: Window, names: Collection[str] = ()) -> dict[str, Any]:
    """Return {"cursor", "series": {name: {"axis", "points": [[x, value]...], "tail": [[x, value]...]}}}.

    `names`: of which series; none: all that a run page draws. A value that is not finite is its name. The cursor is
    what `run`, read just before, has it to be, so every point past it is in a later batch; a point may be in both.
    """
    rows, lineage = _rows(run, names), series.lineage(run)
    curves = [curve for found in rows.values() for curve in _curves(found, lineage)]
    pairs = [list(zip(reading.steps, reading.values, strict=True)) for reading in _read(curves, window)]
    found = {
        name: {"axis": rows[name][0].axis, "points": points, "tail": tail}
        for name, points, tail in zip(rows, pairs[::2], pairs[1::2], strict=True)
        if points or tail
    }
    planned = _planned(run) if not names or PLANNED in names else {}
    return {"cursor": run.journal, "series": planned | found}


def _read(curves: Sequence[series.Curve], window: Window) -> list[series.Reading]:
    """Return the window of each curve; those over time share their points, since there are as many as GPUs."""
    over = {axis: [curve for curve in curves if curve.axis == axis] for axis in ("step", "time")}
    share = SHARED // max(1, len(over["time"]) // 2)  # half of them are tails, which have no point
    shared = window._replace(points=min(window.points, max(FEWEST, share)))
    found = {"step": iter(series.read_all(over["step"], window)), "time": iter(series.read_all(over["time"], shared))}
    return [next(found[curve.axis]) for curve in curves]


def _rows(run: Run, names: Collection[str]) -> Rows:
    found: Rows = {}
    rows = Series.objects.filter(attempt__run=run).order_by("name", "attempt__number")
    for row in series.named(rows, names) if names else filter(_drawn, rows):
        found.setdefault(row.name, []).append(row)
    return found


def _drawn(row: Series) -> bool:
    return row.name != AT if row.axis == "step" else bool(MEMORY.fullmatch(row.name))


def _curves(rows: list[Series], lineage: list[series.Span]) -> tuple[series.Curve, series.Curve]:
    """Return the curve of a series, and its tail."""
    name, axis = rows[0].name, rows[0].axis
    if axis == "time":
        own = [Wanted.of(row) for row in rows[-1:] if row.attempt_id == lineage[0].attempt]
        return series.Curve(name, axis, own), series.Curve(name, axis, [])
    ends = {span.attempt: span.upto for span in lineage}
    beyond = [Wanted.of(row, ends.get(row.attempt_id, -math.inf)) for row in rows]
    tail = [part for part in beyond if part.after < math.inf]
    return series.merged(rows, lineage), series.Curve(name, axis, tail)


def _planned(run: Run) -> dict[str, Any]:
    """The learning rate that the recipe plans, over all steps to come; drawn behind the real one."""
    points = [list(point) for point in learning_rates(run.parsed_recipe(), run.total_steps)]
    return {PLANNED: {"axis": "step", "points": points, "tail": []}} if points else {}
