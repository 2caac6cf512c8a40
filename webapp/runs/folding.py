"""Samples and metrics are events until enough are there; then the older ones are folded into a block and into chunks.

The newest of each writer are always events, so whoever wants the last one, or those around an end, asks the events
alone. `replayed` and `samples` read both.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from django.db import connection, transaction

from training.spec.events import Kind

from . import levels
from .columns import columns_of
from .each import insert_each
from .fresh import Fresh
from .models import Event, Run, SampleBlock, Stream
from .packing import MICRO, Column, pack_texts, unpack_samples
from .serieskeys import Key, series_ids
from .thinning import joined

BLOCK = 60  # lines: of samples a minute
AT_ONCE = 4 * BLOCK  # lines, of which a chunk may be made
TOGETHER = 8  # streams: what is asked of the database for all of them costs as much as a block
KINDS = (str(Kind.SAMPLE), str(Kind.METRICS), str(Kind.EVALUATION))
BLOCKS = ("run_id", "attempt_id", "source", "first", "last", "count", "body")
START = datetime(1970, 1, 1, tzinfo=UTC)
# Asked for each stream anew, so in SQL of its own: Django takes longer to build it than the database to answer it.
# Times as texts: the drivers' own ways to times, with Django's share in them, took as long as all else of a row.
COLUMNS = "number, seq, kind, CAST(at AS text), CAST(received_at AS text), step, CAST(data AS text)"
OF = "FROM runs_event WHERE attempt_id = %s AND source = %s AND kind IN (%s, %s, %s)"
HELD = f"SELECT {COLUMNS} {OF} ORDER BY seq"
OLDER = f"""SELECT {COLUMNS} {OF} AND seq < (
    SELECT seq FROM runs_event WHERE attempt_id = %s AND source = %s ORDER BY seq DESC LIMIT 1 OFFSET %s
) ORDER BY seq"""  # noqa: S608
GONE = f"DELETE {OF} AND seq <= %s"


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


def fold(stream: Stream) -> int:
    """Fold all such lines of `stream` but the newest, a block at a time; return how many blocks that gave."""
    return fold_all([stream])


@transaction.atomic
def fold_all(streams: Collection[Stream]) -> int:
    """Do as fold does with some streams, in one go: most of what is asked of the database is asked once for all."""
    runs = {stream.attempt.run_id for stream in streams}
    list(Run.objects.filter(pk__in=runs).select_for_update().order_by("pk").values_list("pk"))
    return _put([lines for stream in streams if (lines := _older(stream))])


def fold_new(taken: Iterable[tuple[Stream, Sequence[Fresh]]], received: datetime) -> list[Fresh]:
    """Fold new lines with those of their streams before them, where they are so many; return those to be rows.

    Whoever catches up would write rows to read and delete them again at once. In the transaction that numbers them.
    """
    found, others = list[Sequence[Told]](), list[Fresh]()
    for stream, events in taken:
        told = [event for event in events if event.kind in KINDS]
        if len(told) >= 2 * BLOCK:
            lines = _told(stream, _rows(stream, HELD)) + [_of(event, received) for event in told]
            found.append(lines[: (len(lines) - BLOCK) // BLOCK * BLOCK])
            others += [event for event in events if event.seq > found[-1][-1].seq or event.kind not in KINDS]
        else:
            others += events
    _put(found)
    return others


def _put(found: Sequence[Sequence[Told]]) -> int:
    """Make whole blocks of the lines of each stream, and chunks, in the place of their rows; return how many blocks."""
    blocks = [_block(lines[at : at + BLOCK]) for lines in found for at in range(0, len(lines), BLOCK)]
    insert_each(SampleBlock, BLOCKS, blocks)
    for few in range(0, len(found), TOGETHER):
        some = found[few : few + TOGETHER]
        for at in range(0, max(map(len, some)), AT_ONCE):
            _add([lines[at : at + AT_ONCE] for lines in some if len(lines) > at])
    with connection.cursor() as cursor:
        for lines in found:
            cursor.execute(GONE, [lines[0].attempt_id, lines[0].source, *KINDS, lines[-1].seq])
    return len(blocks)


def _older(stream: Stream) -> list[Told]:
    """Return whole blocks of lines, oldest first, without the newest BLOCK of all kinds."""
    rows = _rows(stream, OLDER, stream.attempt_id, stream.source, BLOCK - 1)
    return _told(stream, rows[: len(rows) // BLOCK * BLOCK])


def _rows(stream: Stream, sql: str, *more: str | int) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql, [stream.attempt_id, stream.source, *KINDS, *more])
        return cursor.fetchall()


def _told(stream: Stream, rows: Sequence[Any]) -> list[Told]:
    datas = json.loads(f"[{','.join(row[-1] for row in rows)}]")
    same = stream.attempt.run_id, stream.attempt_id, stream.source
    return [
        Told(*same, number, seq, kind, _read_time(at), _read_time(received), step, text, data)
        for (number, seq, kind, at, received, step, text), data in zip(rows, datas, strict=True)
    ]


def _of(event: Fresh, received: datetime) -> Told:
    return Told(
        event.run_id, event.attempt_id, event.source, event.number, event.seq, event.kind, event.at, received,
        event.step, event.text, event.data,
    )  # fmt: skip


def _block(lines: Sequence[Told]) -> tuple[Any, ...]:
    first, numbers = lines[0], [line.number for line in lines]
    body = pack_texts(_packed(line) for line in lines)
    return first.run_id, first.attempt_id, first.source, min(numbers), max(numbers), len(lines), body


def _packed(line: Told) -> str:
    """Return all that is a line's own, as a block keeps it; kind and step follow unless it is a sample without one."""
    same = f"{line.number},{line.seq},{_ticks(line.at)},{_ticks(line.received_at)},{line.text}"
    if line.kind == Kind.SAMPLE and line.step is None:
        return f"[{same}]"
    return f'[{same},"{line.kind}",{"null" if line.step is None else line.step}]'


def _add(streams: Sequence[Sequence[Told]]) -> None:
    """Add the points of lines, each stream's by themselves."""
    found = [(Key(lines[0].attempt_id, *of), column) for lines in streams for of, column in columns_of(lines).items()]
    ids, columns = series_ids([key for key, _ in found]), dict[int, Column]()
    for key, column in found:
        series = ids[key[:2]]
        columns[series] = joined([columns[series], column]) if series in columns else column
    levels.add(columns)


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


def _read_time(text: str) -> datetime:
    """Read a time as a database writes it; SQLite's is of UTC and doesn't say so."""
    time = datetime.fromisoformat(text)
    return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)


def _time(ticks: int) -> datetime:
    return START + timedelta(microseconds=ticks)
