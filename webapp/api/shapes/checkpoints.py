"""How a checkpoint looks outside."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from django.http import HttpRequest
from django.urls import reverse
from ninja import Schema

from webapp.runs.models import Checkpoint
from webapp.runs.shelf.places import PRIVATE, SHARED, Place
from webapp.runs.shelf.rows import Row

SAME = ("id", "step", "usable", "world_size", "created_at", "completed_at", "deleted_at", "pinned", "notes")
ASKED = ("nodes", "pinned_by", "pinned_at", "delete_asked_at", "delete_asked_by", "freed_bytes", "settled")
DISKS: dict[str, Literal["shared", "private", ""]] = {SHARED: "shared", PRIVATE: "private"}


class CheckpointOut(Schema):
    """Sharded state at a step; only one that is `usable` can be resumed from or exported."""

    id: int
    attempt: int
    step: int
    usable: bool
    bytes: int
    world_size: int
    created_at: datetime
    completed_at: datetime | None
    deleted_at: datetime | None
    pinned: bool
    notes: str

    @classmethod
    def of(cls, row: Checkpoint) -> CheckpointOut:
        fields = {name: getattr(row, name) for name in SAME}
        return cls(attempt=row.attempt.number, bytes=row.bytes, **fields)


class UseOut(Schema):
    """`name`: resume or export. `why`: on what terms, or why not."""

    name: str
    possible: bool
    why: str


class PlaceOut(Schema):
    """A checkpoint on one node. `wrote`: node ranks whose parts were written here.

    `bytes`: as measured at `answered_at`, else as the manifests said. `parts`: node ranks whose parts were found whole
    here, null: not asked yet. `problem`: why the node has not done yet what was asked; it is asked again.
    """

    node: str
    wrote: list[int]
    bytes: int
    parts: list[int] | None
    pinned: bool | None
    deleted_at: datetime | None
    answered_at: datetime | None
    problem: str

    @classmethod
    def of(cls, place: Place) -> PlaceOut:
        copy = place.copy
        return cls(
            node=place.name,
            wrote=place.ranks,
            bytes=place.bytes,
            parts=copy.parts if copy else None,
            pinned=copy.pinned if copy else None,
            deleted_at=copy.deleted_at if copy else None,
            answered_at=copy.answered_at if copy else None,
            problem=place.problem,
        )


class CheckpointFacts(CheckpointOut):
    """A checkpoint with all that is known. `manifests`: of `nodes`, those that have written theirs.

    `settled`: every node has done what was asked of it. `disk`: whether its nodes see one disk; empty: not known.
    """

    run: int
    nodes: int
    manifests: int
    loss: float | str | None
    eval_loss: float | str | None
    uses: list[UseOut]
    disk: Literal["shared", "private", ""]
    places: list[PlaceOut]
    exports: list[int]
    pinned_by: str
    pinned_at: datetime | None
    delete_asked_at: datetime | None
    delete_asked_by: str
    freed_bytes: int | None
    settled: bool
    url: str

    @classmethod
    def of_row(cls, row: Row, request: HttpRequest) -> CheckpointFacts:
        checkpoint = row.checkpoint
        return cls(
            attempt=checkpoint.attempt.number,
            run=checkpoint.attempt.run_id,
            bytes=row.bytes,
            manifests=len(checkpoint.parts.all()),
            loss=row.loss,
            eval_loss=row.eval_loss,
            uses=[UseOut(**vars(use)) for use in row.uses],
            disk=DISKS.get(row.disk, ""),
            places=[PlaceOut.of(place) for place in row.places],
            exports=[export.pk for export in row.exports],
            url=request.build_absolute_uri(reverse("api:checkpoint", args=[checkpoint.pk])),
            **{name: getattr(checkpoint, name) for name in SAME + ASKED},
        )
