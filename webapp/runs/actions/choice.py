"""Which checkpoint a run is gone on from, or exported, and what may not be."""

from __future__ import annotations

from django.db.models import Q

from training.spec.lint import Problem, Refused
from webapp.fleet.models import Node

from ..models import Checkpoint, Run


def newest_checkpoint(run: Run) -> Checkpoint | None:
    """Return the newest attempt's newest complete checkpoint, else that of the attempt before, and so on."""
    usable = Checkpoint.objects.usable().filter(attempt__run=run)
    return usable.order_by("-attempt__number", "-step").first()


def torn_ones(run: Run) -> str:
    """Return what a resume from the newest complete checkpoint passes over, as words behind its step; or nothing."""
    newest = newest_checkpoint(run)
    rows = Checkpoint.objects.filter(attempt__run=run, completed_at=None, deleted_at=None, delete_asked_at=None)
    if newest:
        later = Q(attempt=newest.attempt_id, step__gt=newest.step)
        rows = rows.filter(later | Q(attempt__number__gt=newest.attempt.number))
    names = [
        f"step {row.step} of attempt {row.attempt.number} (on {row.parts.count()} of {row.nodes} nodes)"
        for row in rows.select_related("attempt").order_by("attempt__number", "step")
    ]
    return f"; passed over as incomplete: {', '.join(names)}" if names else ""


def check_resumable(run: Run, checkpoint: Checkpoint) -> None:
    check_checkpoint(run, checkpoint)
    if checkpoint.step >= run.total_steps:
        raise Refused(
            [Problem("checkpoint", "it is the run's last step", "There is nothing left to train; export it.")]
        )
    if gone := away(checkpoint):
        fix = "Bring it back, and confirm its host key; or clone the run to start afresh."
        raise Refused([Problem("cluster", f"{', '.join(gone)} holds the checkpoint and is not reached any more", fix)])


def lock(run: Run) -> None:
    """Hold the run's row until the transaction ends: who uses a checkpoint and who deletes it come one by one."""
    Run.objects.select_for_update().get(pk=run.pk)


def check_checkpoint(run: Run, checkpoint: Checkpoint) -> None:
    """Raise Refused where it can't be used; until the transaction ends nobody deletes it then."""
    lock(run)
    checkpoint.refresh_from_db()
    if checkpoint.attempt.run_id != run.pk:
        raise Refused([Problem("checkpoint", "it belongs to another run", "Choose one of this run's checkpoints.")])
    if not checkpoint.usable:
        asked = "is being deleted" if checkpoint.delete_asked_at else "is not complete"
        what = "was deleted" if checkpoint.deleted_at else asked
        raise Refused([Problem("checkpoint", f"step {checkpoint.step} {what}", "Choose a complete one.")])


def away(checkpoint: Checkpoint) -> list[str]:
    """Return the names of its writers that are removed or whose key is not pinned: nobody can read it there.

    Of any cluster, the run may have been moved; a drained one is read from as before. Which can be reached, and whether
    others have its part too, is seen at the launch.
    """
    writers = Node.objects.filter(placements__attempt=checkpoint.attempt_id).distinct().order_by("name")
    return list(writers.exclude(pk__in=Node.objects.known()).values_list("name", flat=True))


def may_resume(run: Run, newest: Checkpoint | None) -> bool:
    """Tell whether a resume from `newest` is worth a button: what check_resumable asks, without a lock."""
    return run.can_resume and newest is not None and newest.step < run.total_steps and not away(newest)
