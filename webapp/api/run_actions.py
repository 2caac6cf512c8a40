"""Runs: launch, stop, resume, clone."""

from __future__ import annotations

from typing import Any, Literal

from django.db import transaction
from django.http import HttpRequest
from ninja import Field, Router, Schema
from ninja.responses import Status
from pydantic import ConfigDict, StrictInt

from webapp.runs import actions
from webapp.runs.models import Run

from .finders import actor_of, checkpoint_of, run_of, user_of
from .shapes.runs import RunDetail

router = Router(tags=["runs"])
CHECKPOINT = "Step of a checkpoint, of the newest attempt that has one; or else its id. Null: the newest."


class Resume(Schema):
    model_config = ConfigDict(extra="forbid")

    checkpoint: StrictInt | None = Field(None, description=CHECKPOINT)


class Stop(Schema):
    model_config = ConfigDict(extra="forbid")

    how: Literal["graceful", "now"] = Field("graceful", description="now: without waiting for a save.")


class Clone(Schema):
    model_config = ConfigDict(extra="forbid")

    name: str = Field("", description="Empty: the source's name with ` (clone)`.")
    recipe: dict[str, Any] = Field(default_factory=dict, description="Recipe fields that change, nested.")
    launch: bool = Field(False, description="Queue it now; without it the run stays a draft.")


@router.post("/runs/{int:run_id}/launch", response=RunDetail, operation_id="launch_run")
def launch_run(request: HttpRequest, run_id: int) -> RunDetail:
    """Queue a draft."""
    actions.launch(run_of(run_id), actor_of(request))
    return RunDetail.of(run_of(run_id), request)


@router.post("/runs/{int:run_id}/stop", response=RunDetail, operation_id="stop_run")
def stop_run(request: HttpRequest, run_id: int, body: Stop | None = None) -> RunDetail:
    """Ask the run to finish its step, save and end; or to end now. It is `stopped` when each node has proven it.

    Asked twice, it is the same stop; `now` also ends one that waits for its save.
    """
    actions.stop(run_of(run_id), actor_of(request), body.how if body else actions.How.GRACEFUL)
    return RunDetail.of(run_of(run_id), request)


@router.post("/runs/{int:run_id}/resume", response=RunDetail, operation_id="resume_run")
def resume_run(request: HttpRequest, run_id: int, body: Resume | None = None) -> RunDetail:
    """Queue a stopped or failed run again, from a complete checkpoint."""
    run = run_of(run_id)
    actions.resume(run, actor_of(request), checkpoint_of(run, body.checkpoint if body else None))
    return RunDetail.of(run_of(run_id), request)


@router.post("/runs/{int:run_id}/clone", response={201: RunDetail}, operation_id="clone_run")
def clone_run(request: HttpRequest, run_id: int, body: Clone | None = None) -> Status[RunDetail]:
    """Make a run with the same recipe but for what `recipe` changes."""
    made = _clone(run_of(run_id), body or Clone(name="", launch=False), request)
    return Status(201, RunDetail.of(run_of(made.pk), request))


@transaction.atomic
def _clone(run: Run, body: Clone, request: HttpRequest) -> Run:
    made = actions.clone(run, user_of(request), body.recipe, body.name)
    if body.launch:
        actions.launch(made, actor_of(request))
    return made
