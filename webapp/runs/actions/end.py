"""End what runs, with a save."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from training.spec.faults import Reason
from training.spec.lint import Problem, Refused
from webapp.dispatch import advance_run

from .. import lifecycle
from ..models import Attempt, Run
from ..states import RunState


@transaction.atomic
def stop(run: Run, actor: str) -> None:
    """Ask for an end with a save. Asked twice, it is the same stop."""
    run = Run.objects.select_for_update().get(pk=run.pk)
    if run.state == RunState.STOPPING or (run.state == RunState.STOPPED and _was_asked_to_stop(run)):
        return
    if not run.can_stop:
        raise Refused([Problem("state", f"the run is {run.state}", "There is nothing to stop.")])
    Attempt.objects.filter(run=run, ended_at=None).update(stop_requested_at=timezone.now(), due_at=timezone.now())
    if run.state == RunState.QUEUED:
        reason, text = Reason.STOPPED_UNSAVED, "stopped before anything was started"
        lifecycle.move(run, RunState.STOPPED, actor=actor, cause="stop requested", reason=reason, text=text)
    else:
        lifecycle.move(run, RunState.STOPPING, actor=actor, cause="stop requested")
    advance_run(run.pk)


def _was_asked_to_stop(run: Run) -> bool:
    return run.attempt is not None and run.attempt.stop_requested_at is not None
