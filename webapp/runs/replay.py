"""The journal as it was written, in order, wherever its lines lie now: rows of their own, or folded into blocks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from heapq import merge
from operator import attrgetter

from .folding import unfolded
from .models import Attempt, Event, Run, SampleBlock

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

    Events are read before blocks: what is folded in between is in both, and counts once. The end is read before both:
    of what is written in between, blocks alone would be seen, and whoever asks on would pass over the rows beside them.
    """
    end = Run.objects.values_list("journal", flat=True).filter(pk=run_id).first() or 0
    rows = Event.objects.filter(run_id=run_id, number__gt=after, number__lte=end).select_related("attempt")
    found = {row.number: row for row in rows.order_by("number")[:limit]}
    blocks = SampleBlock.objects.filter(run_id=run_id, last__gt=after, first__lte=end).select_related("attempt")
    if len(found) == limit:
        blocks = blocks.filter(first__lt=max(found))
    _add(found, blocks.order_by("first").iterator(AT_ONCE), range(after + 1, end + 1), limit)
    return [found[number] for number in sorted(found)[:limit]]


def _add(found: dict[int, Event], blocks: Iterable[SampleBlock], wanted: range, limit: int) -> None:
    """Add what `blocks`, which come by their first number, hold of `wanted`, as far as it can be among the first."""
    for block in blocks:
        if len(found) >= limit and block.first > sorted(found)[limit - 1]:
            return
        for event in unfolded(block):
            if event.number in wanted:
                event.attempt = block.attempt
                found.setdefault(event.number, event)
