"""The loss of a run in a few dozen numbers, for lists: one question for all of them, for runs of any length."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from .models import Sketch


@dataclass(frozen=True)
class Curve:
    """`values`: finite losses over steps, None where one is not finite. `last`: as JSON can carry it."""

    values: list[float | None] = field(default_factory=list)
    last: float | str | None = None


def loss_curves(runs: Collection[int]) -> dict[int, Curve]:
    """Return the loss curve of each run that has one, by run: its newest attempt's, behind what that went on from."""
    return {row.run_id: _curve(row) for row in Sketch.objects.filter(run__in=runs)}


def _curve(row: Sketch) -> Curve:
    points = list(row.curve)
    if not points or points[-1][0] < row.step:
        points.append([row.step, row.shown])
    return Curve([None if isinstance(value, str) else value for _, value in points], row.shown)
