"""Which of the jobs on a node should run there."""

from __future__ import annotations

from datetime import datetime

from training.spec.jobname import ATTEMPT, JobName
from webapp.fleet.models import Node
from webapp.runs import jobkinds
from webapp.runs.models import Placement

from .models import Leftover


def why(node: Node, name: JobName | None, asked_at: datetime) -> Leftover.Why | None:
    """Return why the job is a leftover; None where it is at work, or was when the node was asked."""
    if name is None:
        return Leftover.Why.UNKNOWN
    ended = _ended(node, name)
    if isinstance(ended, Leftover.Why):
        return ended
    return Leftover.Why.OVER if ended and ended < asked_at else None


def _ended(node: Node, name: JobName) -> datetime | Leftover.Why | None:
    """Return when the job ended, None while it has not; UNKNOWN where there is none of that name on that node."""
    if name.kind == ATTEMPT:
        place = Placement.objects.filter(
            attempt__run=name.run, attempt__number=name.number, rank=name.node_rank or 0, node=node
        ).select_related("attempt")
        row = place.first()
        return row.attempt.ended_at if row else Leftover.Why.UNKNOWN
    kinds = {kind.model.KIND: kind.model for kind in jobkinds.every()}
    job = kinds[name.kind]._default_manager.filter(pk=name.number, node=node).first() if name.kind in kinds else None
    if job is None or job.run.pk != name.run:
        return Leftover.Why.UNKNOWN
    return job.ended_at if job.has_ended else None
