"""Move a run or an export from state to state: legal, atomic, recorded, announced."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.utils import timezone

from training.spec.faults import SENTENCES, Reason

from ..dispatch import advance_run
from . import journal
from .models import Attempt, Export, Run, Transition
from .states import ENDED, EXPORT_ENDED, EXPORT_TRANSITIONS, ExportState, RunState, allowed


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
) -> bool:
    """Move `run` to `new`; return False where somebody else moved it first (nothing is changed then)."""
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
        _close(attempt, new, reason)
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


def _close(attempt: Attempt, new: str, reason: Reason | None) -> None:
    """An ended run's attempt ends with it and gives its nodes back."""
    if new in ENDED:
        attempt.ended_at = timezone.now()
        attempt.reason = reason or ""
        attempt.save(update_fields=["ended_at", "reason"])
        attempt.claims.all().delete()
        for waiting in Run.objects.filter(cluster_id=attempt.run.cluster_id, state=RunState.QUEUED):
            advance_run(waiting.pk)


@transaction.atomic
def move_export(export: Export, new: ExportState, *, reason: Reason | None = None, text: str = "") -> bool:
    """Move `export` to `new`; return False where somebody else moved it first."""
    Run.objects.select_for_update().get(pk=export.run.pk)  # first, as the journal does: else two wait for each other
    old, now = export.state, timezone.now()
    if new not in EXPORT_TRANSITIONS[old]:
        raise IllegalMove(f"export {export.pk}: {old} -> {new}")
    changes: dict[str, object] = {"state": new}
    if new in EXPORT_ENDED:
        changes |= _ending(now, reason, text)
    if Export.objects.filter(pk=export.pk, state=old).update(**changes) != 1:
        export.refresh_from_db()
        return False
    export.refresh_from_db()
    data = {"export": export.pk, "old": old, "new": new, "reason": export.reason}
    journal.note(export.checkpoint.attempt, "export", data, source=f"exportstate@{export.pk}")
    return True
