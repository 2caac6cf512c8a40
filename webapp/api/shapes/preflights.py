"""How a preflight looks outside."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, cast

from django.http import HttpRequest
from ninja import Schema

from webapp.preflights.models import Preflight

CellState = Literal["waiting", "ok", "warning", "problem", "nothing"]


class CellOut(Schema):
    """What one check says of one node. `nothing`: it does not apply, `text` says why. `fix`: what to do."""

    node: str
    check: str
    state: CellState
    text: str
    field: str
    fix: str
    at: datetime | None


class PreflightOut(Schema):
    """`run`: before whose launch it was made; null: somebody asked. `ready`: over, and without a problem."""

    id: int
    cluster: str
    run: int | None
    asked_by: str
    asked_at: datetime
    ended_at: datetime | None
    ready: bool
    cells: list[CellOut]
    page: str

    @classmethod
    def of(cls, row: Preflight, request: HttpRequest) -> PreflightOut:
        cells = [
            CellOut(
                node=cell.node.name, check=cell.check_name, state=cast(CellState, cell.state),
                text=cell.text, field=cell.field, fix=cell.fix, at=cell.at,
            )
            for cell in row.cells.all()
        ]  # fmt: skip
        return cls(
            id=row.pk,
            cluster=row.cluster.name,
            run=row.attempt.run_id if row.attempt else None,
            asked_by=row.asked_by,
            asked_at=row.asked_at,
            ended_at=row.ended_at,
            ready=row.ended_at is not None and not any(cell.state == "problem" for cell in cells),
            cells=cells,
            page=request.build_absolute_uri(row.get_absolute_url()),
        )
