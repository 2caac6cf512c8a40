"""What is marked on the time line of a run's charts: its checkpoints, and where training was taken up and ended."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from training.spec.events import Kind

from .models import Attempt, Checkpoint, Event, Run
from .states import RunState

MOST = 500  # checkpoints, the newest: charts tell no more apart
LAST_LINES = 50  # of rank 0, among which the last step of an attempt is looked for
ENDS = (RunState.SUCCEEDED, RunState.STOPPED, RunState.FAILED)


@dataclass(frozen=True)
class Mark:
    """`x`: the step, None where no step was taken. `at`: seconds since the epoch."""

    x: int | None
    at: float | None
    kind: str
    text: str


def marks(run: Run) -> list[dict[str, Any]]:
    """Return all marks of a run as JSON carries them, by kind and then by time."""
    return [asdict(mark) for mark in (*_checkpoints(run), *_begins(run), *_ends(run))]


def _checkpoints(run: Run) -> list[Mark]:
    rows = Checkpoint.objects.usable().filter(attempt__run=run).order_by("-completed_at")[:MOST]
    return [
        Mark(row.step, _seconds(row.completed_at), "checkpoint", f"checkpoint {row.step}") for row in reversed(rows)
    ]


def _begins(run: Run) -> list[Mark]:
    rows = run.attempts.filter(number__gt=1).select_related("resume_from").order_by("number")
    return [_begin(row) for row in rows]


def _begin(attempt: Attempt) -> Mark:
    step = attempt.resume_from.step if attempt.resume_from else 0
    how = f"restarted by itself ({attempt.restart})" if attempt.restart else "resumed"
    text = f"{how} from step {step}, attempt {attempt.number}"
    kind = "restart" if attempt.restart else "resume"
    return Mark(step, _seconds(attempt.started_at or attempt.created_at), kind, text)


def _ends(run: Run) -> list[Mark]:
    rows = run.transitions.filter(new__in=ENDS).select_related("attempt").order_by("id")
    return [
        Mark(
            _last_step(row.attempt) if row.attempt else None, _seconds(row.at), row.new, f"{row.new}: {row.cause}"[:200]
        )
        for row in rows
    ]


def _last_step(attempt: Attempt) -> int | None:
    """Return the last step that rank 0 told of."""
    lines = Event.objects.filter(attempt=attempt, source="train@0").order_by("-seq")[:LAST_LINES]
    return next((line.step for line in lines if line.kind == Kind.METRICS), None)


def _seconds(moment: datetime | None) -> float | None:
    return moment.timestamp() if moment else None
