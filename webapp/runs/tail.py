"""The end of a run's journal as open pages ask for it, up to ten times a second each: in SQL of its own.

Django takes longer to build such a query, and a model's object of each row, than the database to answer it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from django.db import connection

from .models import Event
from .replay import replayed

PLACE = "SELECT r.journal, a.id, a.number FROM runs_run r LEFT JOIN runs_attempt a ON a.run_id = r.id WHERE r.id = %s"
EVENTS = """SELECT run_id, number, attempt_id, source, kind, at, step, data FROM runs_event
WHERE run_id = %s AND number > %s AND number <= %s ORDER BY number LIMIT %s"""


@dataclass(frozen=True)
class Place:
    """Where a run is: the number of its newest event, and each attempt's number by its id."""

    end: int
    attempts: dict[int, int]

    @property
    def newest(self) -> int | None:
        """The id of the newest attempt."""
        return max(self.attempts, key=self.attempts.__getitem__, default=None)


def place(run_id: int) -> Place:
    with connection.cursor() as cursor:
        cursor.execute(PLACE, [run_id])
        rows = cursor.fetchall()
    return Place(rows[0][0] if rows else 0, {key: number for _, key, number in rows if key is not None})


class Row(NamedTuple):
    """What a page needs of an event."""

    run_id: int
    number: int
    attempt_id: int
    source: str
    kind: str
    at: datetime
    step: int | None
    data: dict[str, Any]

    @classmethod
    def read(cls, run_id: int, number: int, attempt: int, source: str, kind: str, at: Any, step: Any, data: str) -> Row:
        """Return a row as the database gives it: SQLite times as text, without their zone."""
        time = at if isinstance(at, datetime) else datetime.fromisoformat(at).replace(tzinfo=UTC)
        return cls(run_id, number, attempt, source, kind, time, step, json.loads(data))

    @classmethod
    def of(cls, event: Event) -> Row:
        return cls(*(getattr(event, name) for name in cls._fields))


def tail(run_id: int, after: int, end: int, limit: int) -> list[Row]:
    """Return the first `limit` events past number `after` and up to `end`, by number.

    Numbers have no gaps, so blocks of folded samples are looked at only where an event is missing.
    """
    with connection.cursor() as cursor:
        cursor.execute(EVENTS, [run_id, after, end, limit])
        found = [Row.read(*row) for row in cursor.fetchall()]
    if len(found) == min(limit, end - after) and (not found or found[-1].number == after + len(found)):
        return found
    return [Row.of(event) for event in replayed(run_id, after, limit) if event.number <= end]
