"""Notices: what the watch saw on a run."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Router

from webapp.notices.models import Notice

from .finders import run_of
from .paging import Cursor, Limit, Page, newest_first
from .shapes.notices import NoticeOut

router = Router(tags=["notices"])


@router.get("/runs/{int:run_id}/notices", response=Page[NoticeOut], operation_id="list_notices")
def list_notices(
    request: HttpRequest, run_id: int, open: bool = False, cursor: Cursor = "", limit: Limit = 50
) -> Page[NoticeOut]:
    """List what the watch saw on a run, newest first: over all attempts, or with `open` only what is so now."""
    rows = Notice.objects.filter(run=run_of(run_id)).select_related("attempt")
    found, after = newest_first(rows.open() if open else rows, cursor, limit)
    return Page[NoticeOut](items=[NoticeOut.of(row) for row in found], next=after)
