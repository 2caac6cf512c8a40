"""Streams that are due are folded some at a time."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

from tests.runs.test_folding import fill
from tests.runs.test_journal import attempt, stream  # noqa: F401
from webapp.runs.folding import BLOCK
from webapp.runs.models import Attempt, SampleBlock, Stream
from workers.follow import folds as folds_
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


def test_runs_are_locked_in_their_order_within_a_transaction(
    attempt: Attempt,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever stores lines takes them so too: in another order each could wait for the other."""
    monkeypatch.setattr(folds_, "SECONDS", 60.0)
    folds, runs = Folds(), range(40, 0, -1)
    for run in runs:
        folds.stored(Stream(pk=run, attempt=Attempt(pk=run, run_id=run), source="node@0", last_seq=9 * BLOCK), 0)
    locked: list[int] = []

    def note(execute: Any, sql: str, params: Any, *rest: Any) -> Any:
        if sql.startswith('SELECT "runs_run"'):
            locked.extend(sorted(params))
        return execute(sql, params, *rest)

    with connection.execute_wrapper(note):
        folds.some()
    assert locked == sorted(runs)
