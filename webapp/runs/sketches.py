"""Each run's sketch, kept as lines come in. Runs inside the journal's transaction, under the runs' locks."""

from __future__ import annotations

import math
from collections.abc import Mapping

from .each import insert_each, json_value
from .models import Attempt, Sketch
from .serieskeys import Key
from .sketching import Drawn, drawn_on

LOSS = "loss"
COLUMNS = ("run_id", "attempt", "step", "last", "odd", "stride", "curve")


def take(points: Mapping[Key, Mapping[float, float]]) -> None:
    """Draw the losses among new points on the sketches of their runs."""
    losses = {key.attempt: values for key, values in points.items() if key.name == LOSS}
    if not losses:
        return
    rows = Attempt.objects.filter(pk__in=losses).order_by("number")
    attempts = list(rows.values_list("pk", "run_id", "number", "resume_from__step"))
    before = Sketch.objects.in_bulk([run for _, run, _, _ in attempts])
    found = {run: drawn(row) for run, row in before.items()}
    for pk, run, number, resumed in attempts:
        after = -math.inf if resumed is None else float(resumed)
        found[run] = drawn_on(found.get(run, Drawn()), number, after, losses[pk])
    insert_each(Sketch, COLUMNS, [_row(run, sketch) for run, sketch in found.items()], unique=("run_id",))


def drawn(row: Sketch) -> Drawn:
    return Drawn(row.attempt, row.step, row.odd or row.last or 0.0, row.stride, row.curve)


def _row(run: int, sketch: Drawn) -> tuple[object, ...]:
    odd = sketch.last if isinstance(sketch.last, str) else ""
    last = None if odd else sketch.last
    return run, sketch.attempt, sketch.step, last, odd, sketch.stride, json_value(sketch.curve)
