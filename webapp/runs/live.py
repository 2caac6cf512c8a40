"""What an open page has not seen yet: built from the journal alone, whose number is the only cursor.

The socket and the fallback poll send the same batch. Points come in it as they are; of everything else
it says only which parts of the page have changed, and the page asks for those parts again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from training.spec.events import Kind, strict

from . import jobkinds, journal, proof, reach, sources
from .actions.end import KIND as STOP_KIND
from .actions.end import TOLD
from .actions.queue import KIND as QUEUE_KIND
from .logs import is_log, log_entry
from .models import Attempt, Event
from .readings import readings
from .replay import replayed
from .shelf import acts

LIMIT = 500

# Parts of the page (templates/runs/parts/) that a kind of event changes; `charts` stands for all their points.
CHANGES: dict[str, tuple[str, ...]] = {
    Kind.PHASE: ("header",),
    Kind.STARTED: ("header", "facts", "charts"),
    Kind.RESUMED: ("facts",),
    Kind.DATA: ("facts",),
    Kind.METRICS: ("header",),
    Kind.WARNING: ("header",),
    Kind.SAMPLE: ("memory",),
    Kind.CHECKPOINT: ("checkpoints", "actions"),
    Kind.CHECKPOINT_DELETED: ("checkpoints", "actions"),
    Kind.EXIT: ("header", "ending", "history"),
    Kind.FINISHED: ("header",),
    "state": ("header", "ending", "failure", "actions", "history", "checkpoints", "charts"),
    reach.KIND: ("header", "ending"),
    proof.KIND: ("ending",),
    STOP_KIND: ("actions", "history", "ending"),
    TOLD: ("ending",),
    QUEUE_KIND: ("header", "history"),
    journal.SHARDS: ("history",),
    acts.KIND: ("checkpoints", "actions", "history"),
}


def batch(run_id: int, after: int, limit: int = LIMIT) -> dict[str, Any]:
    """Return at most `limit` events past number `after`, as an open page takes them; strict JSON.

    {"cursor": n, "more": bool, "points": {series: [[x, value or "NaN"]...]},
     "log": [{"number", "attempt", "node", "text"}], "changed": [part...], "step": n or null}
    """
    rows = replayed(run_id, after, limit + 1)
    more, rows = len(rows) > limit, rows[:limit]
    newest: int | None = Attempt.objects.filter(run_id=run_id).order_by("-number").values_list("pk", flat=True).first()
    return {
        "cursor": rows[-1].number if rows else after,
        "more": more,
        "points": _points([row for row in rows if row.attempt_id == newest]),
        "log": [log_entry(row) for row in rows if is_log(row)],
        "changed": _changed(rows, newest),
        "step": _step(rows, newest),
    }


def _points(rows: Iterable[Event]) -> dict[str, list[list[Any]]]:
    points: dict[str, list[list[Any]]] = {}
    for row in rows:
        for reading in readings(row):
            points.setdefault(reading.name, []).append([reading.x, strict(reading.value)])
    return points


def _step(rows: Iterable[Event], newest: int | None) -> int | None:
    steps = (row.step for row in rows if row.kind == Kind.METRICS and row.attempt_id == newest)
    return max((step for step in steps if step is not None), default=None)


def _changed(rows: Iterable[Event], newest: int | None) -> list[str]:
    parts: dict[str, None] = {}
    for row in rows:
        if kind := sources.kind_of(row.source):
            parts |= dict.fromkeys(jobkinds.of(kind).parts)
            if row.kind == kind:  # it was asked for, or moved
                parts["history"] = None
            continue
        parts |= dict.fromkeys(CHANGES.get(row.kind, ()))
        if row.attempt_id != newest and row.kind in (Kind.METRICS, Kind.EVALUATION):
            parts["charts"] = None  # a late line of an older attempt: the whole picture is drawn again
    return list(parts)
