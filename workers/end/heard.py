"""When something was last heard of an attempt."""

from __future__ import annotations

from datetime import datetime

from training.spec.events import Kind
from webapp.runs.models import Attempt, Event


def heard(attempt: Attempt, source: str) -> datetime | None:
    """Return when the newest line of `source` came: one look at the index, however many there are."""
    rows = Event.objects.filter(attempt=attempt, source=source).order_by("-seq")
    return rows.values_list("received_at", flat=True).first()


def stepped(attempt: Attempt) -> datetime | None:
    """Return when the newest step was told of."""
    rows = Event.objects.filter(run=attempt.run_id, kind=Kind.METRICS, attempt=attempt).order_by("-number")
    return rows.values_list("received_at", flat=True).first()
