"""Runs: make, list, read; tag, note, archive."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from ninja import Field, Query, Router, Schema
from ninja.responses import Status
from pydantic import ConfigDict, StrictBool, StrictInt, StrictStr

from webapp.fleet.models import Cluster
from webapp.runs import actions, series
from webapp.runs.finding import Wanted, matching
from webapp.runs.models import Event, ModelSource, Run
from webapp.runs.queue.wish import FIELDS, Wish
from webapp.runs.replay import replayed
from webapp.runs.states import RunState

from .finders import Ref, actor_of, named, run_of, user_of, version_named
from .idempotency import once
from .paging import Cursor, Limit, Page, newest_first
from .problems import Stop
from .shapes.runs import EventOut, EventsOut, LogLine, LogOut, RunDetail, RunOut, SeriesOut
from .wire import storable

router = Router(tags=["runs"])


class NewRun(Schema):
    """A run to make. `dataset`: a name means its newest version, `name@2` its second."""

    model_config = ConfigDict(extra="forbid")

    name: str
    preset: str
    recipe: dict[str, Any] = Field(default_factory=dict, description="Recipe fields laid over the preset, nested.")
    model: Ref
    dataset: Ref
    cluster: Ref
    nodes: StrictInt | None = Field(None, description="How many nodes; null: all in service, or all of `on_nodes`.")
    gpus_per_node: StrictInt | None = Field(None, description="Null: all of each. Without GPUs a node counts ranks.")
    labels: list[StrictStr] = Field(default_factory=list, description="Which a node must all have.")
    on_nodes: list[StrictStr] = Field(default_factory=list, description="Names of nodes; empty: any of the cluster.")
    priority: StrictInt = Field(0, description="Higher goes first, -100 to 100; only staff may give more than 0.")
    launch: bool = Field(False, description="Queue it now; without it the run stays a draft.")


@router.post("/runs", response={201: RunDetail}, operation_id="create_run")
def create_run(request: HttpRequest, body: NewRun, response: HttpResponse) -> Status[RunDetail]:
    """Make a run, and queue it where `launch` is set.

    With the header `Idempotency-Key` the same body answers with the same run again, as it is now, and
    `Idempotency-Replayed: true`; another body with that key answers 409. Keys are kept per user.
    """
    run, fresh = once(request, body.model_dump(mode="json"), lambda: _make(request, body))
    if not fresh:
        response["Idempotency-Replayed"] = "true"
    return Status(201, RunDetail.of(run_of(run.pk), request))


@transaction.atomic
def _make(request: HttpRequest, body: NewRun) -> Run:
    order = actions.Order(
        name=body.name,
        preset=body.preset,
        overrides=body.recipe,
        model=named(ModelSource.objects.all(), body.model, "model"),
        dataset=version_named(body.dataset),
        cluster=named(Cluster.objects.all(), body.cluster, "cluster"),
        wish=Wish.of({name: getattr(body, name) for name in FIELDS}),
        priority=body.priority,
    )
    run = actions.create(order, user_of(request))
    if body.launch:
        actions.launch(run, actor_of(request))
    return run


Text = Annotated[str, Query(max_length=200)]


class RunFilter(Schema):
    """Which runs a list holds; what is left out is any."""

    state: RunState | None = None
    q: Annotated[Text, Query(description="Part of the name or of the owner's, or a number.")] = ""
    tag: Text = ""
    owner: Text = ""
    model: Annotated[Text, Query(description="Its name.")] = ""
    dataset: Annotated[Text, Query(description="Its name, for all versions.")] = ""
    archived: Annotated[Literal["", "only", "all"], Query(description="Empty: those that are not archived.")] = ""


@router.get("/runs", response=Page[RunOut], operation_id="list_runs")
def list_runs(request: HttpRequest, wanted: Query[RunFilter], cursor: Cursor = "", limit: Limit = 50) -> Page[RunOut]:
    """List runs, newest first."""
    asked = {name: value for name, value in wanted.model_dump(mode="json").items() if value}
    rows = matching(Wanted.of(asked)).select_related("model", "dataset__dataset", "cluster", "owner", "sketch")
    found, after = newest_first(rows.prefetch_related("tags").defer("recipe", "notes"), cursor, limit)
    return Page[RunOut](items=[RunOut.of(run, request) for run in found], next=after)


@router.get("/runs/{int:run_id}", response=RunDetail, operation_id="read_run")
def read_run(request: HttpRequest, run_id: int) -> RunDetail:
    """Read a run whole: state and reason, progress, last values, attempts, checkpoints, exports."""
    return RunDetail.of(run_of(run_id), request)


class RunChange(Schema):
    """What is left out, or null, stays as it is."""

    model_config = ConfigDict(extra="forbid")

    tags: list[StrictStr] | None = Field(None, description="All that it is to have: at most 20, of 40 characters each.")
    notes: StrictStr | None = Field(None, description="What is to be known of it, as plain text; empty: nothing.")
    archived: StrictBool | None = Field(None, description="Left out of lists; only a run that has ended.")


@router.patch("/runs/{int:run_id}", response=RunDetail, operation_id="change_run")
def change_run(request: HttpRequest, run_id: int, body: RunChange) -> RunDetail:
    """Tag a run, write down a note, archive it or take it out again: all that is given, or nothing.

    Tags are kept in small letters and sorted. Nothing of an archived run is deleted, and once it is resumed it is in
    lists again.
    """
    run = run_of(run_id)
    with transaction.atomic():
        if body.tags is not None:
            actions.set_tags(run, body.tags)
        if body.notes is not None:
            actions.write_notes(run, body.notes)
        if body.archived is not None:
            actions.archive(run, actor_of(request)) if body.archived else actions.unarchive(run)
    return RunDetail.of(run_of(run_id), request)


@router.get("/runs/{int:run_id}/events", response=EventsOut, operation_id="list_events")
def list_events(
    request: HttpRequest,
    run_id: int,
    after: Annotated[int, Query(ge=0, lt=2**63, description="Highest `seq` you have.")] = 0,
    limit: Annotated[int, Query(ge=1, le=5000)] = 500,
) -> EventsOut:
    """Read the run's journal in order: what its nodes wrote and what the service did."""
    run = run_of(run_id)
    found = replayed(run.pk, after, limit + 1)
    shown = found[:limit]
    return EventsOut(items=[EventOut.of(e) for e in shown], next=shown[-1].number if len(found) > limit else None)


@router.get("/runs/{int:run_id}/series/{path:name}", response=SeriesOut, operation_id="read_series")
def read_series(
    request: HttpRequest,
    run_id: int,
    name: str,
    points: Annotated[int, Query(ge=4, le=100_000, description="About how many points to answer with.")] = 1500,
) -> SeriesOut:
    """Read one metric over all attempts, thinned to `points`: extremes and values that are not finite stay."""
    run = run_of(run_id)
    found = series.read(run, name, points) if storable(name) else None
    if found is None:
        known = ", ".join(name for name, _ in series.names(run)) or "none yet"
        raise Stop(404, "name", f"run {run_id} has no such series", f"Known: {known}.")
    return SeriesOut(**vars(found))


@router.get("/runs/{int:run_id}/log", response=LogOut, operation_id="read_log")
def read_log(
    request: HttpRequest,
    run_id: int,
    tail: Annotated[int, Query(ge=1, le=5000, description="Lines at most.")] = 200,
) -> LogOut:
    """Read the end of what the newest attempt's nodes printed."""
    attempt = run_of(run_id).attempt
    return LogOut(items=_tail(run_id, attempt.pk, attempt.number, tail) if attempt else [])


def _tail(run_id: int, attempt_id: int, number: int, tail: int) -> list[LogLine]:
    """An event holds one line or more, so `tail` of them hold enough."""
    rows = Event.objects.filter(run=run_id, kind="log", attempt=attempt_id, source__startswith="log@")
    lines = [
        LogLine(node=int(row.source.partition("@")[2]), attempt=number, line=line)
        for row in reversed(rows.order_by("-number")[:tail])
        for line in str(row.data.get("text", "")).splitlines()
    ]
    return lines[-tail:]
