"""What people do to checkpoints, in the run's journal."""

from __future__ import annotations

from django.db.models import QuerySet

from .. import journal
from ..models import Checkpoint, Event, Run

KIND = "shelf"  # checkpoint (id), step, act, actor; freed: bytes, of what was deleted


def tell(checkpoint: Checkpoint, act: str, actor: str, **more: object) -> None:
    """Add one line; within the caller's transaction."""
    data = {"checkpoint": checkpoint.pk, "step": checkpoint.step, "act": act, "actor": actor, **more}
    journal.note(checkpoint.attempt, KIND, data, source="service:shelf")


def told(run: Run) -> QuerySet[Event]:
    """Return what was done to the run's checkpoints, newest first."""
    return Event.objects.filter(run=run, kind=KIND).select_related("attempt").order_by("-number")
