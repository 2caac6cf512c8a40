"""Checkpoints: what each is good for; pin, note, delete."""

from __future__ import annotations

from typing import Annotated

from django.db import transaction
from django.http import HttpRequest
from ninja import Field, Query, Router, Schema
from ninja.responses import Status
from pydantic import ConfigDict, StrictBool, StrictStr

from webapp.runs import actions
from webapp.runs.models import Checkpoint
from webapp.runs.shelf import rows

from .finders import actor_of, by_id, run_of
from .paging import Cursor, Limit, Page, newest_first
from .shapes.checkpoints import CheckpointFacts

router = Router(tags=["checkpoints"])
ONE = "/checkpoints/{int:checkpoint_id}"


class Change(Schema):
    """What is left out, or null, stays as it is."""

    model_config = ConfigDict(extra="forbid")

    pinned: StrictBool | None = Field(None, description="Kept, whatever the recipe's rule of retention says.")
    notes: StrictStr | None = Field(None, description="What is to be known of it; empty: nothing.")


@router.get("/runs/{int:run_id}/checkpoints", response=Page[CheckpointFacts], operation_id="list_checkpoints")
def list_checkpoints(
    request: HttpRequest, run_id: int, cursor: Cursor = "", limit: Limit = 50
) -> Page[CheckpointFacts]:
    """List the checkpoints of all attempts of a run, those that were deleted among them, newest first."""
    found, after = newest_first(rows.everywhere().filter(attempt__run=run_of(run_id)), cursor, limit)
    return Page[CheckpointFacts](items=[CheckpointFacts.of_row(row, request) for row in rows.made(found)], next=after)


@router.get(ONE, response=CheckpointFacts, operation_id="read_checkpoint", url_name="checkpoint")
def read_checkpoint(request: HttpRequest, checkpoint_id: int) -> CheckpointFacts:
    """Read a checkpoint: what it can be used for or why not, and where it lies, node by node."""
    return _facts(request, checkpoint_id)


@router.patch(ONE, response=CheckpointFacts, operation_id="change_checkpoint")
def change_checkpoint(request: HttpRequest, checkpoint_id: int, body: Change) -> CheckpointFacts:
    """Pin it against rotation, let go of it, or write down a note.

    A pin counts at once here and is then put on the nodes: `settled` says whether all have it, `places` which.
    """
    row = by_id(rows.everywhere(), checkpoint_id, "checkpoint")
    with transaction.atomic():
        if body.pinned is not None:
            actions.pin_checkpoint(row, body.pinned, actor_of(request))
        if body.notes is not None:
            actions.note_checkpoint(row, body.notes, actor_of(request))
    return _facts(request, checkpoint_id)


@router.delete(ONE, response={202: CheckpointFacts}, operation_id="delete_checkpoint")
def delete_checkpoint(
    request: HttpRequest,
    checkpoint_id: int,
    even_last: Annotated[
        bool, Query(description="Also where no other complete checkpoint of the run would be left.")
    ] = False,
) -> Status[CheckpointFacts]:
    """Delete it on all its nodes. Asked twice, it is the same deletion.

    It is not usable from here on; `deleted_at` and `freed_bytes` are there once every node has said that nothing is
    left. Refused while it is pinned, held by an export that has not ended, gone on from by a living attempt, or the
    newest complete one of a living attempt.
    """
    row = by_id(rows.everywhere(), checkpoint_id, "checkpoint")
    actions.delete_checkpoints(row.attempt.run, [row], actor_of(request), even_last=even_last)
    return Status(202, _facts(request, checkpoint_id))


def _facts(request: HttpRequest, key: int) -> CheckpointFacts:
    row: Checkpoint = by_id(rows.everywhere(), key, "checkpoint")
    return CheckpointFacts.of_row(rows.made([row])[0], request)
