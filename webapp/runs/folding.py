"""Samples and metrics are events until enough are there; then the older ones are folded into a block and into chunks.

The newest of each writer are always events, so whoever wants the last one, or those around an end, asks the events
alone. `replayed` and `samples` read both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import transaction

from training.spec.events import Kind

from . import levels
from .models import Event, Run, SampleBlock, Stream
from .packing import MICRO, Column, pack_samples, unpack_samples
from .readings import readings
from .serieskeys import Key, series_ids

BLOCK = 60  # lines: of samples a minute
AT_ONCE = 4 * BLOCK  # lines, of which a chunk may be made
KINDS = (str(Kind.SAMPLE), str(Kind.METRICS), str(Kind.EVALUATION))
START = datetime(1970, 1, 1, tzinfo=UTC)


def is_due(stream: Stream, before: int) -> bool:
    """Tell whether `stream`, which had come to line `before`, may have enough now. Not all streams at once."""
    salt = stream.pk * 2_654_435_761 // 128 % BLOCK
    return (stream.last_seq + salt) // BLOCK != (before + salt) // BLOCK


@transaction.atomic
def fold(stream: Stream) -> int:
    """Fold all such lines of `stream` but the newest, a block at a time; return how many blocks that gave."""
    Run.objects.select_for_update().get(pk=stream.attempt.run_id)
    rows = Event.objects.filter(attempt=stream.attempt_id, source=stream.source, kind__in=KINDS).order_by("seq")
    events = list(rows[: max(0, rows.count() - BLOCK) // BLOCK * BLOCK])
    for at in range(0, len(events), BLOCK):
        _pack(events[at : at + BLOCK])
    for at in range(0, len(events), AT_ONCE):
        _add(stream.attempt_id, events[at : at + AT_ONCE])
    return len(events) // BLOCK


def _pack(events: Sequence[Event]) -> None:
    numbers = [event.number for event in events]
    SampleBlock.objects.create(
        run_id=events[0].run_id,
        attempt_id=events[0].attempt_id,
        source=events[0].source,
        first=min(numbers),
        last=max(numbers),
        count=len(events),
        body=pack_samples(packed(event) for event in events),
    )
    Event.objects.filter(pk__in=[event.pk for event in events]).delete()


def _add(attempt: int, events: Sequence[Event]) -> None:
    columns = columns_of(events)
    ids = series_ids([Key(attempt, name, axis) for name, axis in columns])
    levels.add({ids[attempt, name]: column for (name, _), column in columns.items()})


def columns_of(events: Iterable[Any]) -> dict[tuple[str, str], Column]:
    """Return the points of each series, by name and axis, in these lines: by rising x, of one x the later line's."""
    found: dict[tuple[str, str], dict[float, float]] = defaultdict(dict)
    for event in events:
        for reading in readings(event):
            found[reading.name[:100], reading.axis][reading.x] = reading.value
    return {of: Column.of(sorted(points.items())) for of, points in found.items()}


def packed(event: Any) -> list[Any]:
    """Return all that is a line's own, as a block keeps it; kind and step follow where it is no sample."""
    same = [event.number, event.seq, _ticks(event.at), _ticks(event.received_at), event.data]
    return same if event.kind == Kind.SAMPLE else [*same, event.kind, event.step]


def unfolded(block: SampleBlock) -> list[Event]:
    """Return a block's lines as the events they were, oldest first; they are no rows."""
    return [_unfolded(block, *row) for row in unpack_samples(bytes(block.body))]


def _unfolded(
    block: SampleBlock, number: int, seq: int, at: int, received: int, data: Any,
    kind: str = str(Kind.SAMPLE), step: int | None = None,
) -> Event:  # fmt: skip
    return Event(
        run_id=block.run_id, attempt_id=block.attempt_id, source=block.source, number=number, seq=seq,
        kind=kind, at=_time(at), received_at=_time(received), step=step, data=data,
    )  # fmt: skip


def _ticks(time: datetime) -> int:
    since = time - START
    return (since.days * 86400 + since.seconds) * MICRO + since.microseconds


def _time(ticks: int) -> datetime:
    return START + timedelta(microseconds=ticks)
