"""How long the present phase of a job of one node will still take, by what it has done of it so far."""

from __future__ import annotations

from datetime import timedelta

from training.spec.events import Kind

from . import sources
from .models import Event, NodeJob
from .readings import PROBLEM

LEAST = timedelta(seconds=2)  # earlier nothing can be said


def time_left(job: NodeJob) -> timedelta | None:
    """Return the time left of the present phase; None where it can't be told yet."""
    if not job.total or job.done >= job.total:
        return None
    told = Event.objects.filter(attempt=job.attempt, source=sources.events(job.KIND, job.pk), kind=Kind.PROGRESS)
    told = told.filter(data__phase=job.phase).exclude(data__has_key=PROBLEM).order_by("seq")
    first, last = told.first(), told.last()
    if first is None or last is None or last.at - first.at < LEAST:
        return None
    done = last.data["done"] - first.data["done"]
    return (last.at - first.at) * ((job.total - job.done) / done) if done > 0 else None
