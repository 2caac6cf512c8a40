"""Pin, note and delete checkpoints: rows at once, the nodes soon after."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from training.spec.lint import Problem, Refused
from webapp.dispatch import advance_checkpoint

from ..models import Checkpoint, CheckpointCopy, Run
from ..shelf import acts, doom
from ..shelf.places import places
from .choice import lock

LONGEST_NOTE = 4000


@transaction.atomic
def pin(checkpoint: Checkpoint, pinned: bool, actor: str) -> None:
    """Keep a checkpoint whatever the rule of retention says, or leave it to that again. Asked twice, it is the same."""
    lock(checkpoint.attempt.run)
    checkpoint.refresh_from_db()
    _check_there(checkpoint)
    if checkpoint.completed_at is None:
        raise Refused([Problem("pinned", "it is not complete", "Wait until every node has written its part.")])
    if checkpoint.pinned == pinned:
        return
    checkpoint.pinned, checkpoint.pinned_by, checkpoint.pinned_at = pinned, actor, timezone.now()
    checkpoint.save(update_fields=["pinned", "pinned_by", "pinned_at"])
    acts.tell(checkpoint, "pinned" if pinned else "unpinned", actor)
    _ask(checkpoint)


@transaction.atomic
def look(checkpoint: Checkpoint, after: timedelta = timedelta(0)) -> None:
    """Ask the nodes what of it lies there, and have them remove what ended exports left in it."""
    lock(checkpoint.attempt.run)
    checkpoint.refresh_from_db()
    _check_there(checkpoint)
    _ask(checkpoint, after)


@transaction.atomic
def note(checkpoint: Checkpoint, text: str, actor: str) -> None:
    """Write down what is to be known of a checkpoint; empty: nothing."""
    text = text.replace("\r\n", "\n").strip()
    if len(text) > LONGEST_NOTE:
        raise Refused([Problem("notes", f"it has {len(text)} characters", f"At most {LONGEST_NOTE} fit.")])
    if any(ord(c) < 32 and c not in "\n\t" for c in text):
        raise Refused([Problem("notes", "it has control characters", "Leave them out.")])
    lock(checkpoint.attempt.run)
    checkpoint.refresh_from_db()
    if checkpoint.notes != text:
        checkpoint.notes = text
        checkpoint.save(update_fields=["notes"])
        acts.tell(checkpoint, "noted" if text else "note taken away", actor)


@transaction.atomic
def delete(run: Run, checkpoints: Sequence[Checkpoint], actor: str, *, even_last: bool = False) -> doom.Doom:
    """Ask for checkpoints of `run` to be deleted on all their nodes: all of them, or none and the reasons.

    From here on they are no longer usable; the workers delete and then say what that freed. What is deleted
    already, or being deleted, is passed over. `even_last`: also where nothing to resume or export from is left.
    """
    lock(run)
    rows = _own(run, checkpoints)
    found = doom.doom(run, rows)
    problems = list(found.problems)
    if found.last and not even_last:
        problems.append(
            Problem(
                doom.LAST, _last_one(found), "Say that you want that (in the API: even_last=true), or keep one of them."
            )
        )
    if problems:
        raise Refused(problems)
    now = timezone.now()
    for row in found.checkpoints:
        row.delete_asked_at, row.delete_asked_by = now, actor
        row.save(update_fields=["delete_asked_at", "delete_asked_by"])
        acts.tell(row, "deletion asked", actor)
        _ask(row)
    return found


def _own(run: Run, checkpoints: Sequence[Checkpoint]) -> list[Checkpoint]:
    rows = Checkpoint.objects.filter(attempt__run=run, pk__in=[row.pk for row in checkpoints])
    found = list(rows.select_related("attempt").prefetch_related("parts").order_by("attempt__number", "step"))
    if len(found) < len({row.pk for row in checkpoints}):
        raise Refused([Problem(doom.FIELD, "it belongs to another run", "Choose from this run's checkpoints.")])
    if not found:
        raise Refused([Problem(doom.FIELD, "none is chosen", "Choose at least one.")])
    return found


def _last_one(found: doom.Doom) -> str:
    steps = ", ".join(str(row.step) for row in found.checkpoints if row.usable)
    return f"no complete checkpoint of the run is left without step {steps}"


def _check_there(checkpoint: Checkpoint) -> None:
    if checkpoint.delete_asked_at or checkpoint.deleted_at:
        what = "was deleted" if checkpoint.deleted_at else "is being deleted"
        raise Refused([Problem("checkpoint", f"step {checkpoint.step} {what}", "Choose one that is there.")])


def _ask(checkpoint: Checkpoint, after: timedelta = timedelta(0)) -> None:
    """Have the nodes do what the row says now."""
    for place in places(checkpoint):
        CheckpointCopy.objects.get_or_create(
            checkpoint=checkpoint, node_id=place.node_id, scratch=place.scratch, defaults={"slot": place.slot}
        )
    now = timezone.now()
    Checkpoint.objects.filter(pk=checkpoint.pk).update(asked_at=now, settled=False, due_at=now + after)
    if not after:
        advance_checkpoint(checkpoint.pk)
