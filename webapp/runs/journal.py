"""The run's journal: what nodes wrote and what the service did, in one numbered sequence.

`record` is the only way in for nodes' lines. Rows and the stream's new offset are committed together,
so a reader that dies between the two reads again and changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from django.db import transaction
from django.db.models import F

from training.spec.events import Event as Line
from training.spec.events import strict

from . import digest
from .models import Attempt, Event, Run, Stream, Transition
from .nudge import nudge_on_commit


@transaction.atomic
def record(stream: Stream, lines: Sequence[Line], offset: int) -> int:
    """Store the lines that are new and move `stream` to `offset`; return how many were new.

    Safe to call twice with the same bytes, also by two readers at once: the stream's row is the lock.
    """
    run = Run.objects.select_for_update().get(pk=stream.attempt.run_id)
    held = Stream.objects.select_for_update().get(pk=stream.pk)
    fresh = [line for line in lines if line.seq > held.last_seq]
    if fresh:
        events = _rows(run, held, fresh)
        Event.objects.bulk_create(events)
        digest.take(held, events)
    held.offset = max(held.offset, offset)
    held.last_seq = fresh[-1].seq if fresh else held.last_seq
    held.save(update_fields=["offset", "last_seq"])
    stream.offset, stream.last_seq = held.offset, held.last_seq
    if fresh:
        nudge_on_commit(run.pk)
    return len(fresh)


def _rows(run: Run, stream: Stream, lines: Sequence[Line]) -> list[Event]:
    first = _reserve(run, len(lines))
    return [
        Event(
            run=run,
            number=first + i,
            attempt_id=stream.attempt_id,
            source=stream.source,
            seq=line.seq,
            kind=line.kind,
            at=datetime.fromtimestamp(line.at, UTC),
            step=line.step,
            data=strict(line.data),
        )
        for i, line in enumerate(lines)
    ]


def _reserve(run: Run, count: int) -> int:
    """Return the first of `count` new numbers. The row stays locked until the transaction ends."""
    Run.objects.filter(pk=run.pk).update(journal=F("journal") + count)
    run.refresh_from_db(fields=["journal"])
    return run.journal - count + 1


def announce(attempt: Attempt, move: Transition) -> None:
    """Write a transition into the journal, so that pages and the API see it in order."""
    data = {"old": move.old, "new": move.new, "actor": move.actor, "cause": move.cause}
    add(attempt, "state", seq=move.pk, at=move.at, data=data)


def add(
    attempt: Attempt, kind: str, *, seq: int, at: datetime, data: dict[str, object], source: str = "service"
) -> None:
    """Add one thing that the service did; within the caller's transaction."""
    run = Run.objects.select_for_update().get(pk=attempt.run_id)
    Event.objects.create(
        run=run, number=_reserve(run, 1), attempt=attempt, source=source, seq=seq, kind=kind, at=at, data=data
    )
    nudge_on_commit(run.pk)
