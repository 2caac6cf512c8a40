"""The queue: read it, pause it, let it go on; move a run."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest
from ninja import Field, Router, Schema
from pydantic import ConfigDict, StrictInt, StrictStr

from webapp.fleet.models import Cluster
from webapp.runs import actions
from webapp.runs.queue.show import queues
from webapp.runs.queue.wish import FIELDS, Wish

from .finders import Ref, named, run_of, user_of
from .paging import Page
from .problems import Stop
from .shapes.queue import QueueOut
from .shapes.runs import RunDetail

router = Router(tags=["queue"])


class WhichQueue(Schema):
    model_config = ConfigDict(extra="forbid")

    cluster: Ref | None = Field(None, description="Null: the queues of all clusters.")


class NewPause(WhichQueue):
    why: str = Field(description="For those who wait.")


class Move(Schema):
    """What is left out stays as it is; null and empty say that it does not matter."""

    model_config = ConfigDict(extra="forbid")

    cluster: Ref | None = Field(None, description="Null: the present one.")
    nodes: StrictInt | None = Field(None, description="How many nodes; null: all in service, or all of `on_nodes`.")
    gpus_per_node: StrictInt | None = Field(None, description="Null: all of each.")
    labels: list[StrictStr] = Field(default_factory=list, description="Which a node must all have.")
    on_nodes: list[StrictStr] = Field(default_factory=list, description="Names of nodes; empty: any of the cluster.")
    priority: StrictInt = Field(0, description="-100 to 100; staff raises, the owner may lower.")


@router.get("/queue", response=Page[QueueOut], operation_id="read_queue")
def read_queue(request: HttpRequest) -> Page[QueueOut]:
    """Read what waits in each cluster, in which order and for what, and which GPUs are free."""
    return Page[QueueOut](items=[QueueOut.of(queue) for queue in queues()])


@router.post("/queue/pause", response=Page[QueueOut], operation_id="pause_queue")
def pause_queue(request: HttpRequest, body: NewPause) -> Page[QueueOut]:
    """Have no run started: in a cluster, or anywhere. What runs goes on. Staff alone may."""
    actions.pause(_cluster(body.cluster), _staff(request), body.why)
    return read_queue(request)


@router.post("/queue/go-on", response=Page[QueueOut], operation_id="unpause_queue")
def unpause_queue(request: HttpRequest, body: WhichQueue | None = None) -> Page[QueueOut]:
    """End a pause: of a cluster, or that of all of them. Staff alone may."""
    actions.unpause(_cluster(body.cluster if body else None), _staff(request))
    return read_queue(request)


@router.post("/runs/{int:run_id}/move", response=RunDetail, operation_id="move_run")
def move_run(request: HttpRequest, run_id: int, body: Move) -> RunDetail:
    """Have a run that is on no node train elsewhere, or sooner or later: refused while it runs, but for `priority`."""
    _move(request, run_id, body.model_dump(include=body.model_fields_set))
    return RunDetail.of(run_of(run_id), request)


@transaction.atomic
def _move(request: HttpRequest, run_id: int, asked: dict[str, Any]) -> None:
    run, by = run_of(run_id), user_of(request)
    wish = Wish.of(run.wished().as_json() | {name: asked[name] for name in FIELDS if name in asked})
    actions.move(run, _cluster(asked.get("cluster")) or run.cluster, wish, by)
    actions.prioritise(run, asked.get("priority", run.priority), by)


def _cluster(ref: int | str | None) -> Cluster | None:
    return None if ref is None else named(Cluster.objects.all(), ref, "cluster")


def _staff(request: HttpRequest) -> User:
    user = user_of(request)
    if not user.is_staff:
        raise Stop(403, "Authorization", "only staff may pause a queue or let it go on", "Ask somebody who is staff.")
    return user
