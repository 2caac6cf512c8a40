"""What a page shows of an export's deliveries."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser

from webapp.runs.jobprogress import time_left
from webapp.runs.models import Export

from .actions import usual_name
from .models import Delivery, Destination

SHOWN = 10


def context(export: Export, user: AbstractBaseUser | AnonymousUser) -> dict[str, Any]:
    """Return what `deliveries/part.html` takes."""
    rows = export.deliveries.select_related("destination", "requested_by", "node", "to_node")
    ready = export.state == export.STATES.done
    shown = [(row, None if row.has_ended else time_left(row)) for row in rows[:SHOWN]]
    return {
        "export": export,
        "shown": shown,
        "active": any(not row.has_ended for row, _ in shown),
        "destinations": Destination.objects.select_related("node") if ready else [],
        "can_send": ready,
        "may_name_a_folder": getattr(user, "is_staff", False),
        "usual_name": usual_name(export) if ready else "",
        "states": Delivery.STATES,
    }
