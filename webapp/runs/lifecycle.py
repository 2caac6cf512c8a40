"""Move a run, or a job of one node, from state to state: legal, atomic, recorded, announced."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from django.db import transaction
from django.utils import timezone

from training.spec.faults import SENTENCES, Reason

from . import jobkinds, journal, sources
from .models import Attempt, NodeJob, Run, Transition
from .queue import wake
from .states import ENDED, RunState, allowed


class IllegalMove(RuntimeError):
    """The state machine has no such arrow: a bug of ours."""


@transaction.atomic
def move(
    run: Run,
    new: RunState,
    *,
    actor: str,
    cause: str,
    attempt: Attempt | None = None,
    reason: Reason | None = None,
    text: str = "",
    failure: Mapping[str, object] | None = None,
) -> bool:
    """Move `run` to `new`; return False where somebody else moved it first (nothing is changed then).

    `failure`: for the attempt that ends by it, see Attempt.failure.
    """
    if not allowed(run.state, new):
        raise IllegalMove(f"run {run.pk}: {run.state} -> {new}")
    old, now = run.state, timezone.now()
    changes = {"state": new} | _changes(run, new, now, reason, text)
    if Run.objects.filter(pk=run.pk, state=old).update(**changes) != 1:
        run.refresh_from_db()
        return False
    run.refresh_from_db()
    attempt = attempt or run.attempt
    move_row = Transition.objects.create(run=run, attempt=attempt, old=old, new=new, actor=actor, cause=cause, at=now)
    if attempt is not None:
        _close(attempt, new, reason, failure or {})
        journal.announce(attempt, move_row)
    return True


def _changes(run: Run, new: RunState, now: datetime, reason: Reason | None, text: str) -> dict[str, object]:
    """Return what `new` means for the other columns of a run."""
    if new in ENDED:
        return _ending(now, reason, text)
    if new == RunState.QUEUED:
        return {"ended_at": None, "reason": "", "reason_text": ""}
    return {"started_at": now} if new == RunState.RUNNING and run.started_at is None else {}


def _ending(now: datetime, reason: Reason | None, text: str) -> dict[str, object]:
    return {
        "ended_at": now,
        "reason": reason or "",
        "reason_text": text or (SENTENCES[reason] if reason else ""),
    }


def _close(attempt: Attempt, new: str, reason: Reason | None, failure: Mapping[str, object]) -> None:
    """An ended run's attempt ends with it and gives its nodes back."""
    if new in ENDED:
        attempt.ended_at = timezone.now()
        attempt.reason = reason or ""
        attempt.failure = dict(failure)
        attempt.save(update_fields=["ended_at", "reason", "failure"])
        attempt.claims.all().delete()
        wake.call(attempt.run.cluster_id)


def lock(run_id: int) -> None:
    """Hold a run's row until the transaction ends. Who writes, locks or refers to a job's row in a transaction that
    also moves or tells of one does this first, as the journal does: else two wait for each other.
    """
    Run.objects.select_for_update().get(pk=run_id)


@transaction.atomic
def move_job(
    job: NodeJob, new: str, *, reason: Reason | None = None, text: str = "", also: Mapping[str, object] | None = None
) -> bool:
    """Move a job of one node to `new`; return False where somebody else moved it first. `also`: further columns."""
    lock(job.attempt.run_id)
    old, now = job.state, timezone.now()
    if new not in job.STATES.transitions[old]:
        raise IllegalMove(f"{job.KIND} {job.pk}: {old} -> {new}")
    changes: dict[str, object] = {"state": new, **(also or {})}
    if new in job.STATES.ended:
        changes |= _ending(now, reason, text)
    if new == job.STATES.queued:
        changes |= {"ended_at": None, "reason": "", "reason_text": "", "cancel_asked_at": None}
    if type(job)._default_manager.filter(pk=job.pk, state=old).update(**changes) != 1:
        job.refresh_from_db()
        return False
    job.refresh_from_db()
    tell_of_job(job, old)
    if new == job.STATES.done:
        jobkinds.is_done(job)
    return True


def tell_of_job(job: NodeJob, old: str, **more: object) -> None:
    """Write into the run's journal that `job` came from `old` to where it is; within the caller's transaction."""
    data = {job.KIND: job.pk, "old": old, "new": job.state, "reason": job.reason, **more}
    journal.note(job.attempt, job.KIND, data, source=sources.state(job.KIND, job.pk))
