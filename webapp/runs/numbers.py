"""The numbers of a chart as a file: every point of its series, of all attempts, in CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence

from asgiref.sync import sync_to_async

from . import samples, series
from .models import Run, Series
from .packing import Column

HEADER = ("series", "attempt", "axis", "x", "value")


async def pieces(run: Run, names: Sequence[str]) -> AsyncIterator[str]:
    """Yield the file: a line a point, by series, attempt and x; of all series where none is named.

    `x`: the optimizer step, or seconds since the epoch where `axis` is time. A value that is not finite is NaN,
    Infinity or -Infinity. What a later attempt went on without is in it too: `attempt` tells.
    """
    yield _text([HEADER])
    rows = Series.objects.filter(attempt__run=run).select_related("attempt").order_by("name", "attempt__number")
    async for row in series.named(rows, names) if names else rows:
        passages, head = samples.passages(row), (row.name, row.attempt.number, row.axis)
        while (column := await sync_to_async(_next)(passages)) is not None:
            yield _text((*head, x, value) for x, value in zip(column.xs.tolist(), series.shown(column), strict=True))


def _next(passages: Iterator[Column]) -> Column | None:
    return next(passages, None)


def _text(rows: Iterable[tuple[object, ...]]) -> str:
    made = io.StringIO()
    csv.writer(made, lineterminator="\n").writerows(rows)
    return made.getvalue()
