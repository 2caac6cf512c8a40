"""How destinations and deliveries look outside: no secret, and nothing of one but the names of what is set."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from ninja import Schema

from webapp.deliveries.models import Delivery, Destination
from webapp.runs.jobprogress import time_left


class DestinationOut(Schema):
    """`settings` are those of its kind; `secrets` names what is set, never what it is."""

    id: int
    name: str
    kind: str
    settings: dict[str, Any]
    node: str | None
    secrets: list[str]

    @classmethod
    def of(cls, row: Destination) -> DestinationOut:
        node = row.node.name if row.node else None
        return cls(
            id=row.pk, name=row.name, kind=row.kind, settings=row.settings, node=node, secrets=row.secret_names
        )  # fmt: skip


class DeliveryOut(Schema):
    """`done` and `total` are bytes of the present `phase`, `seconds_left` what is left of it, where that can be told.

    `result`, once it is done: `where`, `url`, `files` with their hashes, `bytes_sent`, `bytes_skipped` (were there
    already), `already` (all of it was), `replaced`.
    """

    id: int
    export: int
    run: int
    destination: str | None
    place: str
    kind: str
    replace: bool
    state: str
    reason: str
    reason_text: str
    phase: str
    done: int
    total: int
    seconds_left: float | None
    result: dict[str, Any]
    requested_by: str | None
    created_at: datetime
    ended_at: datetime | None
    url: str

    @classmethod
    def of(cls, row: Delivery, request: HttpRequest) -> DeliveryOut:
        same = ("id", "place", "replace", "state", "reason", "reason_text", "phase", "done", "total", "result")
        left = None if row.has_ended else time_left(row)
        return cls(
            export=row.export_id,
            run=row.attempt.run_id,
            destination=row.destination.name if row.destination else None,
            kind="node" if row.to_node_id else str(row.target.get("kind", "")),
            seconds_left=left.total_seconds() if left else None,
            requested_by=row.requested_by.get_username() if row.requested_by else None,
            created_at=row.created_at,
            ended_at=row.ended_at,
            url=request.build_absolute_uri(reverse("api:delivery", args=[row.pk])),
            **{name: getattr(row, name) for name in same},
        )
