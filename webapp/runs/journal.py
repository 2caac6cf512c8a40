"""The run's journal: what nodes wrote and what the service did, in one numbered sequence.

`record` is the only way in for nodes' lines. Rows and the stream's new offset are committed together,
so a reader that dies between the two reads again and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from training.spec.events import Event as Line
from training.spec.events import Kind, strict

from . import digest
from .models import Attempt, Event, Run, Stream, Transition
from .nudge import nudge_on_commit

SHARDS = "shards"  # text: what of a checkpoint goes from which node to which, and which way


@dataclass(frozen=True)
class Bad:
    """A complete line that is no event. `end`: byte offset behind it."""

    end: int
    text: str


@transaction.atomic
def record(stream: Stream, lines: Sequence[Line], offset: int, bad: Sequence[Bad] = ()) -> int:
    """Store the lines that are new and move `stream` to `offset`; return how many rows that gave.

    Safe to call twice with the same bytes, also by two readers at once: the run's row is the lock. A bad line
    becomes a warning of its own source, so that it neither blocks the lines behind it nor takes their numbers.
    """
    run = Run.objects.select_for_update().get(pk=stream.attempt.run_id)
    held = Stream.objects.select_for_update().get(pk=stream.pk)
    fresh = _rising(lines, held.last_seq)
    events = [_event(held, line) for line in fresh] + [_warning(held, b) for b in bad if b.end > held.offset]
    if events:
        _number(run, events)
        digest.flag(held, events)
        Event.objects.bulk_create(events)
        digest.take(held, events)
        nudge_on_commit(run.pk)
    held.offset = max(held.offset, offset)
    held.last_seq = fresh[-1].seq if fresh else held.last_seq
    held.save(update_fields=["offset", "last_seq"])
    stream.offset, stream.last_seq = held.offset, held.last_seq
    return len(events)


def _rising(lines: Iterable[Line], last: int) -> list[Line]:
    """Return the lines whose numbers go on rising from `last`; the others were read before."""
    found = []
    for line in lines:
        if line.seq > last:
            found.append(line)
            last = line.seq
    return found


def _event(stream: Stream, line: Line) -> Event:
    return Event(
        run_id=stream.attempt.run_id,
        attempt_id=stream.attempt_id,
        source=stream.source,
        seq=line.seq,
        kind=line.kind,
        at=datetime.fromtimestamp(line.at, UTC),
        step=line.step,
        data=storable(strict(line.data)),
    )


def _warning(stream: Stream, bad: Bad) -> Event:
    return Event(
        run_id=stream.attempt.run_id,
        attempt_id=stream.attempt_id,
        source=f"bad:{stream.source}"[:30],
        seq=bad.end,
        kind=Kind.WARNING,
        at=timezone.now(),
        data=storable({"text": f"a line of {stream.source} is no event", "line": bad.text}),
    )


def storable(value: Any) -> Any:
    """Return `value` with what PostgreSQL's JSON can't hold, NUL and lone surrogates, written as escapes."""
    if isinstance(value, str):
        return value.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {storable(key): storable(v) for key, v in value.items()}
    if isinstance(value, list):
        return [storable(v) for v in value]
    return value


def _number(run: Run, events: Sequence[Event]) -> None:
    """Give `events` the run's next numbers. The row stays locked until the transaction ends."""
    first = _reserve(run, len(events))
    for i, event in enumerate(events):
        event.number = first + i


def _reserve(run: Run, count: int) -> int:
    """Return the first of `count` new numbers."""
    Run.objects.filter(pk=run.pk).update(journal=F("journal") + count)
    run.refresh_from_db(fields=["journal"])
    return run.journal - count + 1


def announce(attempt: Attempt, move: Transition) -> None:
    """Write a transition into the journal, so that pages and the API see it in order."""
    data = {"old": move.old, "new": move.new, "actor": move.actor, "cause": move.cause}
    add(attempt, "state", seq=move.pk, at=move.at, data=data)


def warn(attempt: Attempt, text: str) -> None:
    """Add a warning of the service's own; within the caller's transaction."""
    note(attempt, Kind.WARNING, {"text": text}, source="service:warning")


def note(attempt: Attempt, kind: str, data: Mapping[str, object], *, source: str) -> None:
    """Add one thing that the service did now, numbered by its place in the journal."""
    run = Run.objects.select_for_update().get(pk=attempt.run_id)
    add(attempt, kind, seq=run.journal + 1, at=timezone.now(), data=data, source=source)


def add(
    attempt: Attempt, kind: str, *, seq: int, at: datetime, data: Mapping[str, object], source: str = "service"
) -> None:
    """Add one thing that the service did; within the caller's transaction."""
    run = Run.objects.select_for_update().get(pk=attempt.run_id)
    Event.objects.create(
        run=run, number=_reserve(run, 1), attempt=attempt, source=source, seq=seq, kind=kind, at=at, data=data
    )
    nudge_on_commit(run.pk)
