"""Exports: make or plan one, start, cancel, resume."""

from __future__ import annotations

from typing import Literal

from django.http import HttpRequest, HttpResponse
from ninja import Field, Router, Schema
from ninja.responses import Status
from pydantic import ConfigDict, StrictInt

from training.spec.job import NumberFormat
from webapp.runs import actions
from webapp.runs.models import Export

from .finders import actor_of, by_id, checkpoint_of, run_of, user_of
from .idempotency import once
from .run_actions import CHECKPOINT
from .shapes.exports import ExportOut

router = Router(tags=["exports"])


class NewExport(Schema):
    model_config = ConfigDict(extra="forbid")

    checkpoint: StrictInt | None = Field(None, description=CHECKPOINT)
    dtype: NumberFormat | None = Field(None, description="`base`: as the base model is stored. Null: the recipe's.")
    adapter: Literal["merged", "adapter"] | None = Field(
        None, description="Of an adapter's run: a model of its own, or the adapter alone. Null: the recipe's."
    )
    plan: bool = Field(False, description="Only ask what it would be; `POST start` begins it.")


@router.post("/runs/{int:run_id}/exports", response={201: ExportOut}, operation_id="create_export")
def create_export(
    request: HttpRequest, run_id: int, response: HttpResponse, body: NewExport | None = None
) -> Status[ExportOut]:
    """Queue an export of a complete checkpoint as a standard model folder.

    Its node is asked first what it will be (`plan` in the answer, once the state has left `planning`). One that can't
    work fails with every reason before anything is touched; with `plan` set it waits in `planned` for `POST start`.
    `Idempotency-Key` works as for a run.
    """
    body, run = body or NewExport(checkpoint=None, dtype=None, adapter=None, plan=False), run_of(run_id)
    chosen = checkpoint_of(run, body.checkpoint), body.dtype or "", body.adapter or ""
    act = actions.plan if body.plan else actions.export
    asked = body.model_dump(mode="json") | {"run": run_id}
    made, fresh = once(request, asked, lambda: act(run, user_of(request), *chosen))
    if not fresh:
        response["Idempotency-Replayed"] = "true"
    return Status(201, ExportOut.of(_export(made.pk), request))


@router.post("/exports/{int:export_id}/start", response=ExportOut, operation_id="start_export")
def start_export(request: HttpRequest, export_id: int) -> ExportOut:
    """Start what was planned; refused where the plan says that it can't work. Asked twice, it starts once."""
    actions.start(_export(export_id), actor_of(request))
    return ExportOut.of(_export(export_id), request)


@router.post("/exports/{int:export_id}/cancel", response=ExportOut, operation_id="cancel_export")
def cancel_export(request: HttpRequest, export_id: int) -> ExportOut:
    """Ask for its end: `cancelled` once nothing of it runs on its node any more. What it has written is removed.

    A failed one is discarded so: what it has kept for a resume is removed.
    """
    actions.cancel(_export(export_id), actor_of(request))
    return ExportOut.of(_export(export_id), request)


@router.post("/exports/{int:export_id}/resume", response=ExportOut, operation_id="resume_export")
def resume_export(request: HttpRequest, export_id: int) -> ExportOut:
    """Queue a failed export again: it goes on from what it has written."""
    actions.go_on(_export(export_id), actor_of(request))
    return ExportOut.of(_export(export_id), request)


def _export(key: int) -> Export:
    return by_id(Export.objects.select_related("checkpoint__attempt", "node"), key, "export")
