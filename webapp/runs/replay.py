"""The journal as it was written, in order, wherever its lines lie now: rows of their own, or folded into blocks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from heapq import merge
from operator import attrgetter

from .folding import unfolded
from .models import Attempt, Event, SampleBlock

AT_ONCE = 8  # blocks


def written(attempt: Attempt, source: str, kinds: Collection[str]) -> Iterator[Event]:
    """Yield the lines of these kinds of one file, in the order in which they were written."""
    rows = list(Event.objects.filter(attempt=attempt, source=source, kind__in=kinds).order_by("seq"))
    blocks = SampleBlock.objects.filter(attempt=attempt, source=source).order_by("last")
    folded = (event for block in blocks.iterator(AT_ONCE) for event in unfolded(block) if event.kind in kinds)
    last = 0
    for event in merge(folded, rows, key=attrgetter("seq")):
        if event.seq > last:  # what is folded in between is in both
            yield event
        last = event.seq


def replayed(run_id: int, after: int, limit: int) -> list[Event]:
    """Return at most `limit` events past number `after`, by number; those that were folded are no rows.

    Events are read before blocks: what is folded in between is in both, and counts once.
    """
    rows = Event.objects.filter(run_id=run_id, number__gt=after).select_related("attempt").order_by("number")
    found = {row.number: row for row in rows[:limit]}
    blocks = SampleBlock.objects.filter(run_id=run_id, last__gt=after).select_related("attempt").order_by("first")
    if len(found) == limit:
        blocks = blocks.filter(first__lt=max(found))
    _add(found, blocks.iterator(AT_ONCE), after, limit)
    return [found[number] for number in sorted(found)[:limit]]


def _add(found: dict[int, Event], blocks: Iterable[SampleBlock], after: int, limit: int) -> None:
    """Add what `blocks`, which come by their first number, hold past `after`, as far as it can be among the first."""
    for block in blocks:
        if len(found) >= limit and block.first > sorted(found)[limit - 1]:
            return
        for event in unfolded(block):
            if event.number > after:
                event.attempt = block.attempt
                found.setdefault(event.number, event)
