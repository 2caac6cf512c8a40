"""How an export looks outside."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from ninja import Schema

from training.spec.exportplan import Disk, ExportPlan, Finding, Memory, Rates, Reading, Seconds, Writing
from webapp.runs import expected
from webapp.runs.models import Export
from webapp.runs.states import ExportState


class FileOut(Schema):
    """One file of the model folder. `url` answers with ranges."""

    name: str
    size: int
    sha256: str
    url: str


class PlanOut(Schema):
    """What the node said beforehand. `problems` keep it from working, `notes` don't; bytes and seconds."""

    works: bool
    planned_at: datetime
    expected_seconds: float | None
    problems: list[Finding]
    notes: list[Finding]
    reading: Reading
    writing: Writing
    memory: Memory
    disk: Disk
    rates: Rates
    seconds: Seconds

    @classmethod
    def of(cls, row: Export) -> PlanOut | None:
        plan = row.foretold
        if plan is None or row.planned_at is None:
            return None
        told = {name: getattr(plan, name) for name in ExportPlan.model_fields}
        return cls(works=plan.works, planned_at=row.planned_at, expected_seconds=row.expected_seconds, **told)


class ProgressOut(Schema):
    """Bytes over all phases. `left_seconds` is an estimate, null where nothing tells."""

    done: int
    total: int
    percent: float
    left_seconds: float | None


class ExportOut(Schema):
    """`done` and `total` are bytes of the present `phase`. `adapter` is `none` where the run trained the whole model.
    `dtype` is what was asked for, `made_dtype` what that came to, known once the node was asked.

    `plan` is what its node said beforehand; one that `waits` is only planned. `starts` counts those of its job, `kept`
    are the bytes on its node that the next one goes on from: 0, it starts over; null, not known.
    `files` and `archive` are there once it is ready.
    """

    id: int
    run: int
    checkpoint: int
    attempt: int
    step: int
    dtype: str
    made_dtype: str
    adapter: str
    state: str
    reason: str
    reason_text: str
    phase: str
    done: int
    total: int
    bytes: int
    node: str | None
    proof: dict[str, Any]
    plan: PlanOut | None
    waits: bool
    progress: ProgressOut | None
    took_seconds: float | None
    starts: int
    kept: int | None
    files: list[FileOut]
    archive: str | None
    created_at: datetime
    ended_at: datetime | None
    url: str

    @classmethod
    def of(cls, row: Export, request: HttpRequest) -> ExportOut:
        same = ["id", "dtype", "made_dtype", "adapter", "state", "reason", "reason_text"]
        same += ["phase", "done", "total", "bytes", "proof", "kept"]
        ready = row.state == ExportState.READY

        def link(view: str, *args: Any) -> str:
            return request.build_absolute_uri(reverse(f"api:{view}", args=[row.pk, *args]))

        return cls(
            run=row.checkpoint.attempt.run_id,
            checkpoint=row.checkpoint_id,
            attempt=row.checkpoint.attempt.number,
            step=row.checkpoint.step,
            node=row.node.name if row.node else None,
            files=[FileOut(url=link("export_file", f["name"]), **_plain(f)) for f in row.files] if ready else [],
            archive=link("export_archive") if ready else None,
            created_at=row.created_at,
            ended_at=row.ended_at,
            plan=PlanOut.of(row),
            waits=row.waits,
            progress=_progress(row),
            took_seconds=expected.took(row),
            starts=row.start,
            url=link("export"),
            **{name: getattr(row, name) for name in same},
        )


def _progress(row: Export) -> ProgressOut | None:
    found = expected.progress(row)
    if found is None:
        return None
    return ProgressOut(done=found.done, total=found.total, percent=round(found.percent, 1), left_seconds=found.left)


def _plain(file: dict[str, Any]) -> dict[str, Any]:
    return {key: file[key] for key in ("name", "size", "sha256")}
