"""The run's journal: what nodes wrote and what the service did, in one numbered sequence.

`record` is the only way in for nodes' lines. Rows and the stream's new offset are committed together,
so a reader that dies between the two reads again and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from training.spec.events import Event as Line
from training.spec.events import Kind

from . import digest, folding
from .each import insert_each, time_values, update_each
from .fresh import COLUMNS, Fresh, fresh_of
from .models import Attempt, Event, Run, Stream, Transition
from .nudge import hasty, nudge_on_commit

SHARDS = "shards"  # text: what of a checkpoint goes from which node to which, and which way


@dataclass(frozen=True)
class Bad:
    """A complete line that is no event. `end`: byte offset behind it."""

    end: int
    text: str


@dataclass(frozen=True)
class Read:
    """What was read of a stream up to byte `offset`."""

    stream: Stream
    lines: Sequence[Line]
    offset: int
    bad: Sequence[Bad] = ()


def record(stream: Stream, lines: Sequence[Line], offset: int, bad: Sequence[Bad] = ()) -> int:
    """Store the lines that are new and move `stream` to `offset`; return how many rows that gave."""
    return record_all([Read(stream, lines, offset, bad)])


@transaction.atomic
def record_all(reads: Sequence[Read]) -> int:
    """Store what was read of several streams, each once in `reads`; return how many new ones that gave.

    Safe to call twice with the same bytes, also by two readers at once: the runs' rows are the locks, taken in the
    order of their ids. A bad line becomes a warning of its own source, so that it neither blocks the lines behind it
    nor takes their numbers. A stream that is gone with its run is passed over.
    """
    journals = _locked(reads)
    rows = Stream.objects.filter(pk__in=[read.stream.pk for read in reads]).select_related("attempt")
    held = {row.pk: row for row in rows.select_for_update(of=("self",)).order_by("pk")}
    digested = [(held[read.stream.pk], _taken(held[read.stream.pk], read)) for read in reads if read.stream.pk in held]
    events = [event for _, found in digested for event in found]
    _number(journals, events)
    for stream, found in digested:
        digest.flag(stream, found)
    _insert(digested)
    digest.take(digested)
    update_each(Stream, ["offset", "last_seq"], [(row.offset, row.last_seq, row.pk) for row in held.values()])
    nudge_on_commit(hasty(events), {event.run_id for event in events})
    for read in reads:
        if row := held.get(read.stream.pk):
            read.stream.offset, read.stream.last_seq = row.offset, row.last_seq
    return len(events)


def _insert(digested: Iterable[tuple[Stream, Sequence[Fresh]]]) -> None:
    received = timezone.now()
    events = folding.fold_new(digested, received)
    now, *times = time_values([received, *(event.at for event in events)])
    insert_each(Event, COLUMNS, [event.row(at, now) for event, at in zip(events, times, strict=True)])


def _locked(reads: Iterable[Read]) -> dict[int, int]:
    """Lock the runs; return the newest number of each."""
    runs = {read.stream.attempt.run_id for read in reads}
    return dict(Run.objects.filter(pk__in=runs).select_for_update().order_by("pk").values_list("pk", "journal"))


def _taken(held: Stream, read: Read) -> list[Fresh]:
    """Return the events that are new, and move `held` on."""
    fresh = _rising(read.lines, held.last_seq)
    events = fresh_of(held, fresh) + [_warning(held, bad) for bad in read.bad if bad.end > held.offset]
    held.offset = max(held.offset, read.offset)
    held.last_seq = fresh[-1].seq if fresh else held.last_seq
    return events


def _rising(lines: Iterable[Line], last: int) -> list[Line]:
    """Return the lines whose numbers go on rising from `last`; the others were read before."""
    found = []
    for line in lines:
        if line.seq > last:
            found.append(line)
            last = line.seq
    return found


def _warning(stream: Stream, bad: Bad) -> Fresh:
    data = {"text": f"a line of {stream.source} is no event", "line": bad.text}
    source = f"bad:{stream.source}"[:30]
    (found,) = fresh_of(stream, [Line(bad.end, timezone.now().timestamp(), Kind.WARNING, None, data)])
    return replace(found, source=source)


def _number(journals: dict[int, int], events: Sequence[Fresh]) -> None:
    """Give `events` their runs' next numbers. The runs' rows stay locked until the transaction ends."""
    for event in events:
        journals[event.run_id] += 1
        event.number = journals[event.run_id]
    moved = {event.run_id for event in events}
    update_each(Run, ["journal"], [(journals[run], run) for run in sorted(moved)])


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
    nudge_on_commit({run.pk})
