"""What the benchmark puts into rows is what folding puts there."""

from __future__ import annotations

import numpy as np
import pytest

from tests.runs.test_journal import attempt  # noqa: F401
from webapp.runs import levels
from webapp.runs.models import Attempt, Chunk, Series
from webapp.runs.packing import Column
from webapp.runs.thinning import cut

from .folded import folded

pytestmark = pytest.mark.django_db
EACH, POINTS = 100, 30_050  # so that levels 0 and 1 have whole chunks and loose ones


def test_the_chunks_are_those_that_adding_piece_by_piece_leaves(attempt: Attempt) -> None:  # noqa: F811
    values = np.random.default_rng(6).normal(0, 1, POINTS)
    values[::777] = np.nan
    column = Column(np.arange(1.0, POINTS + 1), values)
    row = Series.objects.create(attempt=attempt, name="loss", axis="step")
    for first in range(0, POINTS, EACH):
        levels.add({row.pk: cut(column, first, first + EACH)})
    there = Chunk.objects.values_list(*levels.COLUMNS)
    found = [levels.row(row.pk, part, level, loose=loose) for level, loose, part in folded(column, EACH)]
    assert {(level, loose) for _, level, loose, *_ in found} >= {(0, False), (0, True), (1, False), (1, True)}
    assert sorted(found) == sorted((*line, bytes(body)) for *line, body in there)
