"""The loss of a run in a few dozen numbers, for lists: cheap for runs of any length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .models import Point, Run, Series

SAMPLES = 40


@dataclass(frozen=True)
class Curve:
    """`values`: finite losses over steps, None where one is not finite. `last`: as JSON can carry it."""

    values: list[float | None] = field(default_factory=list)
    last: float | str | None = None


def loss_curves(runs: Sequence[Run]) -> dict[int, Curve]:
    """Return the newest attempt's loss curve of each run that has one, by run."""
    newest: dict[int, Series] = {}
    rows = Series.objects.filter(attempt__run__in=runs, name="loss").select_related("attempt")
    for series in rows.order_by("attempt__number"):
        newest[series.attempt.run_id] = series
    return {run.pk: _curve(run, newest[run.pk]) for run in runs if run.pk in newest}


def _curve(run: Run, series: Series) -> Curve:
    last = series.points.order_by("-x").first()
    if last is None:
        return Curve()
    points = series.points.filter(x__in=_probes(run, last)).order_by("x")
    return Curve([point.value for point in points], last.shown)


def _probes(run: Run, last: Point) -> set[float]:
    """Return the steps to look at. Reading every point of a long series to draw 80 pixels would be slow."""
    every = int(run.recipe.get("optimisation", {}).get("log_every", 1))
    stride = every * max(1, int(last.x) // (every * SAMPLES))
    return {1.0, last.x, *(float(x) for x in range(stride, int(last.x) + 1, stride))}
