"""How a run, its attempts, checkpoints and events look outside."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from ninja import Schema

from webapp.runs import series
from webapp.runs.models import Attempt, Checkpoint, Event, Export, Placement, Run, Transition
from webapp.runs.queue.waiting import waiting

from .checkpoints import CheckpointOut
from .exports import ExportOut

Number = float | str | None


class RunOut(Schema):
    """A run in a list. `last_loss`: one that is not finite is its name as a string, null: it has none."""

    id: int
    name: str
    state: str
    reason: str
    reason_text: str
    step: int
    total_steps: int
    preset: str
    model: str
    dataset: str
    dataset_version: int
    cluster: str
    owner: str | None
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    tags: list[str]
    last_loss: Number
    archived_at: datetime | None
    url: str

    @classmethod
    def fields_of(cls, run: Run, request: HttpRequest) -> dict[str, Any]:
        same = ("id", "name", "state", "reason", "reason_text", "step", "total_steps", "preset")
        times = ("created_at", "started_at", "ended_at", "archived_at")
        return {name: getattr(run, name) for name in same + times} | {
            "model": run.model.name,
            "dataset": run.dataset.dataset.name,
            "dataset_version": run.dataset.number,
            "cluster": run.cluster.name,
            "owner": run.owner.get_username() if run.owner else None,
            "tags": [tag.name for tag in run.tags.all()],
            "last_loss": run.sketch.shown if hasattr(run, "sketch") else None,
            "url": request.build_absolute_uri(run.get_absolute_url()),
        }

    @classmethod
    def of(cls, run: Run, request: HttpRequest) -> RunOut:
        return cls(**cls.fields_of(run, request))


class PlaceOut(Schema):
    """An attempt on one node. `gpus`: those that it has there, empty: all; of a node without GPUs its ranks.

    `exit`: what the node's supervisor wrote last, null while it runs. `proven_gone_at`: since when it is known that
    nothing of the attempt is left there; `proof`: what the node said last of that, with `processes`, `gpus` (bytes
    `before` and `now`) and `seconds` from the request to stop.
    """

    rank: int
    node: str
    gpus: list[int]
    started_at: datetime | None
    unreachable_since: datetime | None
    exit: dict[str, Any] | None
    proven_gone_at: datetime | None
    proof: dict[str, Any] | None

    @classmethod
    def of(cls, place: Placement) -> PlaceOut:
        return cls(
            rank=place.rank,
            node=place.node.name,
            gpus=list(place.slot.get("gpus") or ()),
            started_at=place.started_at,
            unreachable_since=place.unreachable_since,
            exit=place.exit,
            proven_gone_at=place.proven_gone_at,
            proof=place.proof,
        )


class AttemptOut(Schema):
    """One launch of the run. `resumed_from`: the checkpoint's step. `restart`: which in a row, 0 if a person asked.

    `failure`: where it failed first: node, node_rank, rank over all nodes or null, at (seconds since the epoch),
    dragged (ranks of nodes that only were drawn along); empty where it did not.
    """

    number: int
    restart: int
    reason: str
    failure: dict[str, Any]
    resumed_from: int | None
    world_size: int
    facts: dict[str, Any]
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    nodes: list[PlaceOut]

    @classmethod
    def of(cls, row: Attempt) -> AttemptOut:
        same = ("number", "restart", "reason", "failure", "world_size", "facts", "created_at", "started_at", "ended_at")
        return cls(
            resumed_from=row.resume_from.step if row.resume_from else None,
            nodes=[PlaceOut.of(place) for place in row.placements.all()],
            **{name: getattr(row, name) for name in same},
        )


class MoveOut(Schema):
    """A change of state, with who or what caused it."""

    old: str
    new: str
    at: datetime
    actor: str
    cause: str

    @classmethod
    def of(cls, row: Transition) -> MoveOut:
        return cls(old=row.old, new=row.new, at=row.at, actor=row.actor, cause=row.cause)


class WishOut(Schema):
    """Where a run would like to train; null and empty: anywhere, all of it."""

    nodes: int | None
    gpus_per_node: int | None
    labels: list[str]
    on_nodes: list[str]


class WaitingOut(Schema):
    """What a queued run waits for. `place` 1 is next `of` those of its cluster; `runs` are in its way."""

    place: int
    of: int
    text: str
    runs: list[int]


class RunDetail(RunOut):
    """A run whole. `metrics`: the last value of each; one that is not finite is its name as a string.

    `waiting`: null where it isn't queued.
    """

    recipe: dict[str, Any]
    notes: str
    cloned_from: int | None
    wish: WishOut
    priority: int
    waiting: WaitingOut | None
    metrics: dict[str, Number]
    history: list[MoveOut]
    attempts: list[AttemptOut]
    checkpoints: list[CheckpointOut]
    exports: list[ExportOut]

    @classmethod
    def of(cls, run: Run, request: HttpRequest) -> RunDetail:
        attempts = run.attempts.select_related("resume_from").prefetch_related("placements__node")
        checkpoints = Checkpoint.objects.filter(attempt__run=run).select_related("attempt").prefetch_related("parts")
        exports = Export.objects.filter(checkpoint__attempt__run=run, waits=False).select_related(
            "checkpoint__attempt", "node"
        )
        return cls(
            recipe=run.recipe,
            notes=run.notes,
            cloned_from=run.cloned_from_id,
            wish=WishOut(**run.wished().as_json()),
            priority=run.priority,
            waiting=WaitingOut(**vars(waits)) if (waits := waiting(run)) else None,
            metrics=series.last_values(run),
            history=[MoveOut.of(row) for row in run.transitions.all()],
            attempts=[AttemptOut.of(row) for row in attempts],
            checkpoints=[CheckpointOut.of(row) for row in checkpoints],
            exports=[ExportOut.of(row, request) for row in exports],
            **cls.fields_of(run, request),
        )


class EventOut(Schema):
    """`seq` counts within the run, without gaps; `source` and `source_seq` name the line on its node."""

    seq: int
    kind: str
    at: datetime
    step: int | None
    attempt: int
    source: str
    source_seq: int
    data: dict[str, Any]

    @classmethod
    def of(cls, row: Event) -> EventOut:
        return cls(
            seq=row.number,
            kind=row.kind,
            at=row.at,
            step=row.step,
            attempt=row.attempt.number,
            source=row.source,
            source_seq=row.seq,
            data=row.data,
        )


class EventsOut(Schema):
    """`next`: what to give as `after` for the next page; null: there is none yet, ask again after the last `seq`."""

    items: list[EventOut]
    next: int | None


class SeriesOut(Schema):
    """`steps`: optimizer steps (axis step) or seconds since the epoch (axis time); values not finite are names."""

    name: str
    axis: str
    steps: list[float | int]
    values: list[float | str]


class LogLine(Schema):
    node: int
    attempt: int
    line: str


class LogOut(Schema):
    """The last lines that the newest attempt's nodes printed, oldest first."""

    items: list[LogLine]
    next: None = None
