"""Store what readers gave. A line that no row can take becomes a warning: it must not block those behind it, nor
another stream's.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from django.db import InterfaceError, OperationalError

from training.spec.events import Event as Line
from webapp.runs import journal, serieskeys
from webapp.runs.journal import Bad, Read
from webapp.runs.models import Stream

from .reader import SHOWN, Batch

log = logging.getLogger(__name__)
AWAY = (OperationalError, InterfaceError)  # the database is busy or gone: the same batch goes in later


def store_all(taken: Sequence[tuple[Stream, Batch]]) -> None:
    """Store the batches of several streams in one transaction. Raises AWAY; then it may be called again."""
    try:
        journal.record_all([Read(stream, batch.lines, batch.offset, batch.bad) for stream, batch in taken])
    except AWAY:
        raise
    except Exception:  # noqa: BLE001  whatever one stream's lines do to a row holds up no other's, and is told there
        serieskeys.forget()
        for stream, batch in taken:
            store(stream, batch)


def store(stream: Stream, batch: Batch) -> None:
    """Store `batch` and move the stream on. Raises AWAY; then nothing was stored and it may be called again."""
    try:
        journal.record(stream, batch.lines, batch.offset, batch.bad)
    except AWAY:
        raise
    except Exception:  # whatever a line can do to a row: found out one by one
        log.exception("%s: lines are stored one by one", stream)
        pairs = zip(batch.lines, batch.ends, strict=True)
        bad = [problem for line, end in pairs if (problem := _one(stream, line, end))]
        journal.record(stream, [], batch.offset, [*batch.bad, *bad])


def _one(stream: Stream, line: Line, end: int) -> Bad | None:
    try:
        journal.record(stream, [line], 0)
    except AWAY:
        raise
    except Exception as error:  # noqa: BLE001  as above
        return Bad(end, f"{type(error).__name__}: {error}: {line.line()}"[:SHOWN])
    return None
