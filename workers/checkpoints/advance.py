"""Do on its nodes what was asked of one checkpoint: any number of callers, at any time, as often as it takes.

Nodes come one after the other: where several see one disk, the first to delete frees all of it and the others find
nothing, so that no byte is counted twice.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from django.db import OperationalError, transaction
from django.utils import timezone

from training.spec.folder import hold_name
from webapp import dispatch
from webapp.fleet.ssh import SshError
from webapp.runs.models import Checkpoint, CheckpointCopy, Run
from webapp.runs.shelf import acts
from webapp.runs.shelf.places import places
from webapp.runs.states import EXPORT_STATES

from .. import lease
from .ask import Found, ask

log = logging.getLogger(__name__)
SOONEST, LATEST = timedelta(seconds=5), timedelta(minutes=5)  # until a node that has not done it is asked again
OURSELVES = "Shardboard"


def advance(checkpoint_id: int) -> None:
    """Ask each node that has yet to answer, unless another does it now."""
    row = Checkpoint.objects.filter(pk=checkpoint_id, settled=False).first()
    if row is None:
        return
    with lease.hold(row) as held:
        if not held or row.settled:
            return
        seconds = _step(row)
    if seconds is not None and lease.due_in(row, seconds):
        dispatch.advance_checkpoint(checkpoint_id)


def _step(row: Checkpoint) -> float | None:
    """Return in how many seconds to look again; None: all is done."""
    asked = row.asked_at
    written = {(place.node_id, place.scratch) for place in places(row) if place.ranks}
    copies = list(row.copies.select_related("node__identity"))
    for copy in copies:
        if not _has_done(copy, row):
            _one(row, copy, written=(copy.node_id, copy.scratch) in written)
    if any(copy.problem for copy in copies):
        return _pause(row)
    return None if _settle(row, asked) else 0.0


def _has_done(copy: CheckpointCopy, row: Checkpoint) -> bool:
    """Tell whether the node has done what was asked last; a deletion it has done for good."""
    if row.delete_asked_at or copy.deleted_at:
        return copy.deleted_at is not None
    answered = copy.answered_at and row.asked_at and copy.answered_at >= row.asked_at
    return bool(answered) and not copy.problem


def _pause(row: Checkpoint) -> float:
    waited = timezone.now() - (row.asked_at or row.created_at)
    return min(max(waited / 4, SOONEST), LATEST).total_seconds()


def _one(row: Checkpoint, copy: CheckpointCopy, *, written: bool) -> None:
    """Have one node do it; keep its answer, or why there is none."""
    try:
        if row.delete_asked_at:
            _delete(row, copy)
        else:
            _look(row, copy, written=written)
        return
    except OperationalError:
        raise  # nothing is wrong with the node, the sweep comes back
    except SshError as error:
        copy.problem = str(error)
    except Exception as error:  # a bug of ours must not end the worker, nor be tried without pause
        log.exception("%s on %s", row, copy.node)
        copy.problem = f"{copy.node}: an unexpected error of the service ({type(error).__name__}: {error})."
    copy.save(update_fields=["problem"])


def _look(row: Checkpoint, copy: CheckpointCopy, *, written: bool) -> None:
    """Pin or unpin where it was written, for only there does training rotate it away; elsewhere only look."""
    word = ("pin" if row.pinned else "unpin") if written and row.pinned_at else ""
    _keep(copy, ask(row, copy, word, without=_let_go(row)))


def _delete(row: Checkpoint, copy: CheckpointCopy) -> None:
    """Measure, write that down, delete, and have the node prove that nothing is left."""
    if copy.freed_bytes is None:
        before = ask(row, copy)
        copy.freed_bytes = before.bytes
        _keep(copy, before)
    if copy.pinned and row.pinned_at:  # ours, whose taking away did not get there; one put by hand there stays
        _keep(copy, ask(row, copy, "unpin"))
    ended = ["--ended"] if row.attempt.ended_at else []
    after = ask(row, copy, "delete", *ended, without=_let_go(row))
    copy.freed_bytes = max(copy.freed_bytes, after.freed)
    copy.deleted_at = timezone.now() if after.bytes == 0 and not after.refused else None
    _keep(copy, after)


def _let_go(row: Checkpoint) -> list[str]:
    """Return the names of holds that no export needs any more: one may have stayed where its node was away."""
    return [hold_name(pk) for pk in row.exports.filter(state__in=EXPORT_STATES.ended).values_list("pk", flat=True)]


def _keep(copy: CheckpointCopy, found: Found) -> None:
    copy.bytes, copy.parts, copy.pinned = found.bytes, found.parts, found.pinned
    copy.answered_at = timezone.now()
    gone = found.bytes == 0  # what is not there can't be pinned: that is an answer, and is looked at as one
    copy.problem = f"{copy.node}: {found.refused}" if found.refused and not gone else ""
    copy.save()


@transaction.atomic
def _settle(row: Checkpoint, asked: object) -> bool:
    """Write down what the nodes' answers mean; False where something else was asked meanwhile."""
    Run.objects.select_for_update().get(pk=row.attempt.run_id)
    row.refresh_from_db()
    if row.asked_at != asked:
        return False
    copies = list(row.copies.select_related("node"))
    if row.delete_asked_at:
        _deleted(row, copies)
    elif row.deleted_at is None:
        _told(row, copies)
    row.settled = True
    row.save(update_fields=["settled", "deleted_at", "freed_bytes", "completed_at"])
    return True


def _deleted(row: Checkpoint, copies: list[CheckpointCopy]) -> None:
    row.deleted_at = row.deleted_at or timezone.now()
    row.freed_bytes = sum(copy.freed_bytes or 0 for copy in copies)
    acts.tell(row, "deleted", row.delete_asked_by, freed=row.freed_bytes)


def _told(row: Checkpoint, copies: list[CheckpointCopy]) -> None:
    """A checkpoint that its nodes have lost is not offered any longer."""
    if not any(copy.bytes for copy in copies):
        row.deleted_at = timezone.now()
        acts.tell(row, "found gone from every node", OURSELVES)
        return
    if row.pinned_at and all(copy.pinned == row.pinned for copy in copies if copy.pinned is not None):
        acts.tell(row, f"{'' if row.pinned else 'un'}pinned on every node", OURSELVES)
    there = {rank for copy in copies for rank in copy.parts or []}
    lost = sorted(set(range(row.nodes)) - there)
    if row.completed_at and lost:
        row.completed_at = None
        names = ", ".join(map(str, lost))
        acts.tell(row, f"found incomplete: the part of node {names} is gone or damaged", OURSELVES)
