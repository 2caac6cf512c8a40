"""How far a node's clock leads ours, from when its lines were written there and arrived here."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from webapp.runs.models import Attempt, Event

RECENT = 300


def lead(pairs: Iterable[tuple[datetime, datetime]]) -> float:
    """Return the lead in seconds out of (written there, received here) pairs; 0 where there is none.

    The line that came fastest says most: any delay on the way only makes the lead look smaller.
    """
    return max(((there - here).total_seconds() for there, here in pairs), default=0.0)


def lead_of(attempt: Attempt, rank: int) -> float:
    rows = Event.objects.filter(attempt=attempt, source=f"node@{rank}").order_by("-seq")
    return lead(rows.values_list("at", "received_at")[:RECENT])
