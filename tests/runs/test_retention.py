"""Raw samples go when they are old enough, and charts of the whole run stay."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from tests.runs.test_folding import fill
from tests.runs.test_journal import attempt, stream  # noqa: F401
from webapp.runs import levels, retention, series
from webapp.runs.folding import BLOCK, fold
from webapp.runs.models import Attempt, Chunk, Run, SampleBlock, Series
from webapp.runs.packing import Column

pytestmark = pytest.mark.django_db
POINTS = 17 * BLOCK


@pytest.fixture
def run(attempt: Attempt) -> Run:  # noqa: F811
    fold(fill(attempt, 2 * BLOCK))
    fold(stream(attempt))
    held = [Series.objects.create(attempt=attempt, name=f"x{axis}", axis=axis) for axis in ("time", "step")]
    for first in range(0, POINTS, BLOCK):
        column = Column.of((x, 1e9 if x == 333 else float(x % 7)) for x in range(first, first + BLOCK))
        levels.add({row.pk: column for row in held})
    return attempt.run


def values(run: Run, name: str) -> list[Any]:
    found = series.read(run, name, 10_000)
    assert found is not None
    return found.values


def test_a_run_that_ended_long_ago_keeps_what_its_charts_show(run: Run, settings: Any) -> None:
    settings.SAMPLES_DAYS, now = "30", timezone.now()
    Run.objects.update(ended_at=now - timedelta(days=29))
    assert retention.drop(now) == 0
    Run.objects.update(ended_at=now - timedelta(days=31))
    assert (retention.drop(now), retention.drop(now)) == (1, 0)
    assert {block.source for block in SampleBlock.objects.all()} == {"train@0"}
    assert not Chunk.objects.filter(series__axis="time", level=0, loose=False).exists()
    coarse, whole = values(run, "xtime"), values(run, "xstep")
    assert len(whole) == POINTS
    assert BLOCK < len(coarse) < POINTS / 4
    assert (coarse[0], max(coarse), min(coarse), coarse[-1]) == (whole[0], 1e9, 0.0, whole[-1])


def test_for_ever_is_for_ever(run: Run, settings: Any) -> None:
    settings.SAMPLES_DAYS = "0"
    Run.objects.update(ended_at=timezone.now() - timedelta(days=9999))
    assert retention.drop(timezone.now()) == 0
    assert SampleBlock.objects.filter(source="node@0").exists()
