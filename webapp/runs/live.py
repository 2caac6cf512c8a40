"""What an open page has not seen yet: built from the journal alone, whose number is the only cursor.

The socket and the fallback poll send the same batch. Points come in it as they are; of everything else
it says only which parts of the page have changed, and the page asks for those parts again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, chain
from typing import Any

from training.spec.events import Kind, strict

from . import jobkinds, journal, proof, reach, sources
from .actions.end import KIND as STOP_KIND
from .actions.end import TOLD
from .actions.queue import KIND as QUEUE_KIND
from .logs import is_log, log_entry
from .readings import Reading, readings
from .shelf import acts
from .tail import Row, place, tail

LIMIT = 500  # events of a batch
MOST_POINTS = 10_000  # of a batch: a sample of a node with eight GPUs is some 80
FAR = 2000  # events behind the newest from which on a page reads itself anew: that is less than all of them

# Parts of the page (templates/runs/parts/) that a kind of event changes; `charts` stands for all their points, and
# `progress` for what the header tells of steps, which each page would otherwise ask for once a second.
CHANGES: dict[str, tuple[str, ...]] = {
    Kind.PHASE: ("header",),
    Kind.STARTED: ("header", "facts", "charts"),
    Kind.RESUMED: ("facts",),
    Kind.DATA: ("facts",),
    Kind.METRICS: ("progress",),
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

    From a number that is far behind, or of no such event, there is nothing in it but the newest number and
    "fresh": true: the page has to ask for its picture, its log and its parts again, and goes on from that number.
    """
    now = place(run_id)
    if not after <= now.end <= after + FAR:
        return _batch(now.end, fresh=True)
    rows = tail(run_id, after, now.end, limit + 1) if after < now.end else []
    drawn = [[*readings(row)] if row.attempt_id == now.newest else [] for row in rows[:limit]]
    kept = rows[: _fitting(drawn)]
    return _batch(
        kept[-1].number if kept else after,
        more=len(rows) > len(kept),
        points=_points(drawn[: len(kept)]),
        log=[log_entry(row, now.attempts[row.attempt_id]) for row in kept if is_log(row)],
        changed=_changed(kept, now.newest),
        step=_step(kept, now.newest),
    )


def _batch(cursor: int, **told: Any) -> dict[str, Any]:
    return {"cursor": cursor, "more": False, "points": {}, "log": [], "changed": [], "step": None} | told


def _fitting(drawn: Sequence[Sequence[Reading]]) -> int:
    """Return how many events give no more points than a batch takes, one at least."""
    sums = accumulate(len(points) for points in drawn)
    return sum(1 for i, points in enumerate(sums) if i == 0 or points <= MOST_POINTS)


def _points(drawn: Iterable[Iterable[Reading]]) -> dict[str, list[list[Any]]]:
    points: dict[str, list[list[Any]]] = {}
    for reading in chain.from_iterable(drawn):
        points.setdefault(reading.name, []).append([reading.x, strict(reading.value)])
    return points


def _step(rows: Iterable[Row], newest: int | None) -> int | None:
    steps = (row.step for row in rows if row.kind == Kind.METRICS and row.attempt_id == newest)
    return max((step for step in steps if step is not None), default=None)


def _changed(rows: Iterable[Row], newest: int | None) -> list[str]:
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
