"""Samples and metrics are events until enough are there; then the older ones are folded into a block and into chunks.

The newest of each writer are always events, so whoever wants the last one, or those around an end, asks the events
alone. `replayed` and `samples` read both.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Container, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
from django.db import transaction
from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast

from training.spec.events import Kind

from . import levels, readings
from .each import insert_each
from .models import Event, Run, SampleBlock, Stream
from .packing import MICRO, Column, pack_texts, unpack_samples
from .serieskeys import Key, series_ids
from .thinning import joined

BLOCK = 60  # lines: of samples a minute
AT_ONCE = 4 * BLOCK  # lines, of which a chunk may be made
Columns = dict[tuple[str, str], Column]  # by name and axis
KINDS = (str(Kind.SAMPLE), str(Kind.METRICS), str(Kind.EVALUATION))
BLOCKS = ("run_id", "attempt_id", "source", "first", "last", "count", "body")
START = datetime(1970, 1, 1, tzinfo=UTC)


def is_due(stream: Stream, before: int) -> bool:
    """Tell whether `stream`, which had come to line `before`, may have enough now. Not all streams at once."""
    salt = stream.pk * 2_654_435_761 // 128 % BLOCK
    return (stream.last_seq + salt) // BLOCK != (before + salt) // BLOCK


class Told(NamedTuple):
    """A line as it is folded. `text`: the data as the database has it."""

    run_id: int
    attempt_id: int
    source: str
    number: int
    seq: int
    kind: str
    at: datetime
    received_at: datetime
    step: int | None
    text: str
    data: dict[str, Any]


COLUMNS = ("number", "seq", "kind", "at", "received_at", "step")


@transaction.atomic
def fold(stream: Stream) -> int:
    """Fold all such lines of `stream` but the newest, a block at a time; return how many blocks that gave."""
    Run.objects.select_for_update().values_list("pk").get(pk=stream.attempt.run_id)
    rows = Event.objects.filter(attempt=stream.attempt_id, source=stream.source, kind__in=KINDS).order_by("seq")
    lines = _read(stream, rows, max(0, rows.count() - BLOCK) // BLOCK * BLOCK)
    if not lines:
        return 0
    insert_each(SampleBlock, BLOCKS, [_block(lines[at : at + BLOCK]) for at in range(0, len(lines), BLOCK)])
    for at in range(0, len(lines), AT_ONCE):
        _add(stream.attempt_id, columns_of(lines[at : at + AT_ONCE]))
    gone = rows.filter(seq__lte=lines[-1].seq).order_by()
    gone._raw_delete(gone.db)  # nothing refers to events
    return len(lines) // BLOCK


def _read(stream: Stream, rows: QuerySet[Event], count: int) -> list[Told]:
    same = stream.attempt.run_id, stream.attempt_id, stream.source
    found = rows.annotate(text=Cast("data", TextField())).values_list(*COLUMNS, "text")[:count]
    return [Told._make((*same, *line, json.loads(line[-1]))) for line in found.iterator()]


def _block(lines: Sequence[Told]) -> tuple[Any, ...]:
    first, numbers = lines[0], [line.number for line in lines]
    body = pack_texts(_packed(line) for line in lines)
    return first.run_id, first.attempt_id, first.source, min(numbers), max(numbers), len(lines), body


def _packed(line: Told) -> str:
    """Return all that is a line's own, as a block keeps it; kind and step follow where it is no sample."""
    same = f"{line.number},{line.seq},{_ticks(line.at)},{_ticks(line.received_at)},{line.text}"
    return f"[{same}]" if line.kind == Kind.SAMPLE else f'[{same},"{line.kind}",{json.dumps(line.step)}]'


def _add(attempt: int, columns: Columns) -> None:
    ids = series_ids([Key(attempt, name, axis) for name, axis in columns])
    levels.add({ids[attempt, name]: column for (name, _), column in columns.items()})


def columns_of(lines: Iterable[readings.Told], names: Container[str] | None = None) -> Columns:
    """Return the points of each series, by name and axis, in these lines: by rising x, of one x the later line's.

    `names`: of which series; None: of all.
    """
    found: dict[tuple[str, str], tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for line in lines:
        axis, x, numbers = readings.figures(line)
        for name, value in numbers:
            if names is not None and name[:100] not in names:
                continue
            xs, values = found[name[:100], axis]
            xs.append(x)
            values.append(value)
    return {of: joined([Column(np.array(xs), np.array(values))]) for of, (xs, values) in found.items()}


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
