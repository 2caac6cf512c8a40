"""Cancel a job of one node."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from training.spec.lint import Problem, Refused
from webapp.dispatch import advance_job

from .. import lifecycle
from ..models import NodeJob


def let_go(job: NodeJob) -> None:
    """Have a job ended that nobody has started: the same, without a word in anybody's name. The run is locked."""
    if not job.has_ended:
        type(job)._default_manager.filter(pk=job.pk, cancel_asked_at=None).update(cancel_asked_at=timezone.now())
        advance_job(job.KIND, job.pk)


@transaction.atomic
def cancel(job: NodeJob, actor: str) -> None:
    """Have `job` ended; it is `cancelled` once nothing of it is left on its node. Asking again changes nothing.

    So is a failed one that has left something there for its next start: that is discarded.
    """
    lifecycle.lock(job.attempt.run_id)
    job.refresh_from_db()
    if job.leaves_something:
        lifecycle.move_job(job, job.STATES.queued)
    if job.has_ended:
        why = f"{job.KIND} {job.pk} has ended: it is {job.state}"
        raise Refused([Problem("state", why, "There is nothing to cancel.")])
    if job.cancel_asked_at is None:
        job.cancel_asked_at = timezone.now()
        job.save(update_fields=["cancel_asked_at"])
        lifecycle.tell_of_job(job, job.state, actor=actor, asked="cancel", text=f"{job.KIND} {job.pk} to be cancelled")
    advance_job(job.KIND, job.pk)
