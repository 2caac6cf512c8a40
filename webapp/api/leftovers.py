"""Leftovers: what runs on nodes and should not. Anyone with an account may look; only staff ends one."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Router
from ninja.responses import Status

from webapp.leftovers import actions
from webapp.leftovers.models import Leftover

from .finders import actor_of, by_id, user_of
from .paging import Cursor, Limit, Page, newest_first
from .problems import Stop
from .shapes.leftovers import LeftoverOut

router = Router(tags=["leftovers"])


@router.get("/leftovers", response=Page[LeftoverOut], operation_id="list_leftovers")
def list_leftovers(request: HttpRequest, cursor: Cursor = "", limit: Limit = 50) -> Page[LeftoverOut]:
    """List what runs on nodes though its run is over or not known here, and what was ended within a day."""
    found, after = newest_first(Leftover.objects.select_related("node"), cursor, limit)
    return Page[LeftoverOut](items=[LeftoverOut.of(row) for row in found], next=after)


@router.post("/leftovers/{int:leftover_id}/end", response={202: LeftoverOut}, operation_id="end_leftover")
def end_leftover(request: HttpRequest, leftover_id: int) -> Status[LeftoverOut]:
    """End one at once, by its folder alone; `ended_at` is there when nothing of it is left."""
    if not user_of(request).is_staff:
        raise Stop(403, "id", "only staff may end what is left on nodes", "Ask a staff account.")
    row = by_id(Leftover.objects.select_related("node"), leftover_id, "leftover")
    actions.end(row, actor_of(request))
    row.refresh_from_db()
    return Status(202, LeftoverOut.of(row))
