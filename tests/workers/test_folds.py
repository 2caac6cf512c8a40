"""Streams that are due are folded some at a time."""

from __future__ import annotations

import pytest

from tests.runs.test_folding import fill
from tests.runs.test_journal import attempt, stream  # noqa: F401
from webapp.runs.folding import BLOCK
from webapp.runs.models import Attempt, SampleBlock, Stream
from workers.follow.folds import Folds

pytestmark = pytest.mark.django_db


def test_one_that_can_not_be_folded_keeps_no_other_from_it(attempt: Attempt) -> None:  # noqa: F811
    good, folds = fill(attempt, 3 * BLOCK), Folds()
    gone = Stream(
        pk=good.pk + 100, attempt=Attempt(pk=attempt.pk + 1, run_id=0), source="node@0", last_seq=good.last_seq
    )
    for one in (gone, good, stream(attempt)):
        folds.stored(one, 0)
    assert folds.due == 3
    while folds.due:
        folds.some()
    counts = SampleBlock.objects.values_list("source", "count")
    assert sorted(counts) == [("node@0", BLOCK)] * 2 + [("train@0", BLOCK)] * 2
