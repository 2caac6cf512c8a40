"""What the run page shows of notices."""

from __future__ import annotations

from typing import Any

from webapp.runs import live, page
from webapp.runs.models import Run
from webapp.runs.states import RunState

from .models import Notice, Watch

EVENT = "notice"  # kind of the journal's line by which open pages look again
PAST = 20


def context(run: Run) -> dict[str, Any]:
    """Return what `runs/parts/notices.html` takes."""
    attempt = run.attempt
    watch = Watch.objects.filter(attempt=attempt).first() if attempt else None
    past = list(Notice.objects.filter(run=run).exclude(ended_at=None)[: PAST + 1])
    return {
        "open": list(Notice.objects.open().filter(run=run).order_by("began_at", "pk")),
        "past": past[:PAST],
        "more": len(past) > PAST,
        "watched": run.state == RunState.RUNNING,
        "looked_at": watch.looked_at if watch else None,
    }


def register() -> None:
    page.PARTS["notices"] = context
    live.CHANGES[EVENT] = ("notices",)
    live.CHANGES["state"] = (*live.CHANGES["state"], "notices")
