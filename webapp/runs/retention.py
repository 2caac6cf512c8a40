"""How long raw samples are kept: of runs that ended longer ago, what charts of the whole run show stays.

SAMPLES_DAYS after a run's end its samples go as blocks of the journal, and its series over time are kept from level 1
on: of 64 samples the first, least, greatest and last. Metrics over steps, logs and all else stay.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from .models import Chunk, Run, SampleBlock, Series

AT_ONCE = 20  # runs at one look


def days() -> int | None:
    """Return the setting, 0 for ever; None where it is no whole number."""
    text = str(settings.SAMPLES_DAYS).strip()
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 6 else None


def drop(now: datetime) -> int:
    """Drop what is due of a few runs; return of how many. Safe to be killed anywhere, and to be done twice."""
    kept = days()
    if not kept:
        return 0
    due = Run.objects.filter(ended_at__lt=now - timedelta(days=kept))
    held = due.filter(Exists(_blocks(OuterRef("pk"))) | Exists(_whole(OuterRef("pk"))))
    runs = list(held.order_by("ended_at").values_list("pk", flat=True)[:AT_ONCE])
    for run in runs:
        _drop(run)
    return len(runs)


@transaction.atomic
def _drop(run: int) -> None:
    """The run's lock keeps out who would fold or merge meanwhile."""
    Run.objects.select_for_update().values_list("pk").get(pk=run)
    Series.objects.filter(attempt__run=run, axis="time").update(floor=1)
    for rows in (_whole(run), _blocks(run)):
        rows.model._default_manager.filter(pk__in=list(rows.values_list("pk", flat=True))).delete()


def _blocks(run: int | OuterRef) -> QuerySet[SampleBlock]:
    return SampleBlock.objects.filter(run=run, source__startswith="node@")


def _whole(run: int | OuterRef) -> QuerySet[Chunk]:
    """What level 1 has the gist of; loose chunks are in no other level."""
    return Chunk.objects.filter(series__attempt__run=run, series__axis="time", level=0, loose=False)
