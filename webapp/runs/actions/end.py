"""End what runs: with a save, or now."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from django.db import transaction
from django.utils import timezone

from training.spec.faults import Reason
from training.spec.lint import Problem, Refused
from webapp.dispatch import advance_run

from .. import journal, lifecycle
from ..models import Attempt, Run
from ..states import RunState

KIND = "stop"  # text, actor: a stop that goes on otherwise than it began
TOLD = "told"  # ranks: nodes that have been asked for a save and an end


class How(StrEnum):
    """graceful: all ranks save and end. now: they are ended at once, and what isn't saved is lost."""

    GRACEFUL = "graceful"
    NOW = "now"


CAUSES = {How.GRACEFUL: "stop requested", How.NOW: "stop requested, without waiting for a save"}


@transaction.atomic
def stop(run: Run, actor: str, how: str = How.GRACEFUL) -> None:
    """Ask for an end. Asked twice, it is the same stop; only one that waits for a save can be turned into `now`."""
    way = _way(how)
    run = Run.objects.select_for_update().get(pk=run.pk)
    attempt = run.attempt
    if run.state == RunState.STOPPED and attempt is not None and attempt.stop_requested_at:
        return
    if run.state == RunState.STOPPING and attempt is not None:
        _hurry(run, attempt, actor, way)
        return
    if not run.can_stop:
        raise Refused([Problem("state", f"the run is {run.state}", "There is nothing to stop.")])
    _note(run, way)
    if run.state == RunState.QUEUED:
        reason, text = Reason.STOPPED_UNSAVED, "stopped before anything was started"
        lifecycle.move(run, RunState.STOPPED, actor=actor, cause=CAUSES[way], reason=reason, text=text)
    else:
        lifecycle.move(run, RunState.STOPPING, actor=actor, cause=CAUSES[way])
    advance_run(run.pk)


def _way(how: str) -> How:
    try:
        return How(how)
    except ValueError:
        raise Refused([Problem("how", f"{how[:40]!r} is no way to stop", "Say graceful, or now.")]) from None


def _note(run: Run, way: How) -> None:
    now = timezone.now()
    hurried = {"stop_now_at": now} if way == How.NOW else {}
    Attempt.objects.filter(run=run, ended_at=None).update(stop_requested_at=now, due_at=now, **hurried)


def _hurry(run: Run, attempt: Attempt, actor: str, way: How) -> None:
    """Turn a stop that waits for a save into one that doesn't."""
    if way != How.NOW or attempt.stop_now_at:
        return
    Attempt.objects.filter(pk=attempt.pk).update(stop_now_at=timezone.now(), due_at=timezone.now())
    text = "asked to end now, without waiting for the save"
    journal.note(attempt, KIND, {"text": text, "actor": actor}, source="service:stop")
    advance_run(run.pk)


@transaction.atomic
def told(attempt: Attempt, ranks: Collection[int]) -> None:
    """Keep which nodes have been asked to save and end; said once of each, so that open pages hear of it."""
    Run.objects.select_for_update().get(pk=attempt.run_id)
    rows = attempt.placements.filter(rank__in=ranks, stop_told_at=None)
    if fresh := sorted(rows.values_list("rank", flat=True)):
        rows.update(stop_told_at=timezone.now())
        journal.note(attempt, TOLD, {"ranks": fresh}, source="service:stop")
