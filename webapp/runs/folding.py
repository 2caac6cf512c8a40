"""Samples are events until enough of them are there; then the older ones are folded into a block and its chunks.

A run's newest samples of each node are always events, so whoever wants the last one, or those around an end, asks the
events alone. `replayed` and `samples` read both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import transaction

from training.spec.events import Kind

from .models import Chunk, Event, Run, SampleBlock, Stream
from .packing import MICRO, pack_points, pack_samples, unpack_samples
from .readings import readings
from .serieskeys import Key, series_ids

BLOCK = 60  # samples: a minute of a node
START = datetime(1970, 1, 1, tzinfo=UTC)


def is_due(stream: Stream, before: int) -> bool:
    """Tell whether `stream`, which had come to line `before`, may have enough now. Not all streams at once."""
    salt = stream.pk * 2_654_435_761 // 128 % BLOCK
    return (stream.last_seq + salt) // BLOCK != (before + salt) // BLOCK


@transaction.atomic
def fold(stream: Stream) -> int:
    """Fold all samples of `stream` but the newest, a block at a time; return how many blocks that gave."""
    Run.objects.select_for_update().get(pk=stream.attempt.run_id)
    rows = Event.objects.filter(attempt=stream.attempt_id, source=stream.source, kind=Kind.SAMPLE).order_by("seq")
    events = list(rows[: max(0, rows.count() - BLOCK) // BLOCK * BLOCK])
    for at in range(0, len(events), BLOCK):
        _fold(events[at : at + BLOCK])
    return len(events) // BLOCK


def _fold(events: Sequence[Event]) -> None:
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
    columns = columns_of(events)
    ids = series_ids({Key(events[0].attempt_id, name, "time") for name in columns})
    Chunk.objects.bulk_create(
        Chunk(series_id=ids[events[0].attempt_id, name], **chunk_of(points)) for name, points in columns.items()
    )
    Event.objects.filter(pk__in=[event.pk for event in events]).delete()


def columns_of(events: Iterable[Any]) -> dict[str, dict[float, float]]:
    """Return {series: {x: value}} of these samples."""
    found: dict[str, dict[float, float]] = defaultdict(dict)
    for event in events:
        for reading in readings(event):
            found[reading.name[:100]][reading.x] = reading.value
    return found


def chunk_of(points: dict[float, float]) -> dict[str, Any]:
    """Return the fields of the chunk that holds these points."""
    pairs = sorted(points.items())
    return {"first": pairs[0][0], "last": pairs[-1][0], "count": len(pairs), "body": pack_points(pairs)}


def packed(event: Any) -> list[Any]:
    """Return all that is a sample's own, as a block keeps it."""
    return [event.number, event.seq, _ticks(event.at), _ticks(event.received_at), event.data]


def unfolded(block: SampleBlock) -> list[Event]:
    """Return a block's samples as the events they were, oldest first; they are no rows."""
    same = {"run_id": block.run_id, "attempt_id": block.attempt_id, "source": block.source, "kind": str(Kind.SAMPLE)}
    return [
        Event(number=number, seq=seq, at=_time(at), received_at=_time(received), data=data, **same)
        for number, seq, at, received, data in unpack_samples(bytes(block.body))
    ]


def _ticks(time: datetime) -> int:
    since = time - START
    return (since.days * 86400 + since.seconds) * MICRO + since.microseconds


def _time(ticks: int) -> datetime:
    return START + timedelta(microseconds=ticks)
