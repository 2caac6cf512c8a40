"""What a run costs: its GPUs' hours by the price of its nodes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from .models import Placement, Run

HOUR = 3600.0


@dataclass(frozen=True)
class Cost:
    """In the currency of the settings. `in_all`: at its end, None where that is not known.

    `unpriced`: nodes of it that have no price, whose part is missing.
    """

    so_far: float
    in_all: float | None
    unpriced: list[str]


def cost(run: Run, left: timedelta | None, now: datetime | None = None) -> Cost | None:
    """Return what all attempts cost by today's prices, `left` being the time to come; None where no node has one.

    A GPU costs from when its node was prepared to the end of the attempt.
    """
    rows = Placement.objects.filter(attempt__run=run).exclude(prepared_at=None)
    held = list(rows.select_related("node", "attempt"))
    if all(placement.node.gpu_hour_price is None for placement in held):
        return None
    now = now or timezone.now()
    so_far = sum(_hours(placement, now) * _an_hour(placement) for placement in held)
    rate = sum(_an_hour(placement) for placement in held if placement.attempt.ended_at is None)
    unpriced = sorted({placement.node.name for placement in held if placement.node.gpu_hour_price is None})
    in_all = so_far + rate * left.total_seconds() / HOUR if left is not None else None
    return Cost(so_far, in_all, unpriced)


def _hours(placement: Placement, now: datetime) -> float:
    begin = placement.prepared_at or now
    return max(0.0, ((placement.attempt.ended_at or now) - begin).total_seconds() / HOUR)


def _an_hour(placement: Placement) -> float:
    slot = placement.node_slot()
    return (len(slot.gpus) or slot.processes) * (placement.node.gpu_hour_price or 0.0)
