"""Runs with long series, stored as the lines of nodes are once they are folded."""

from __future__ import annotations

import numpy as np

from tests.webapp.rows import START, World
from webapp.runs import folding, levels
from webapp.runs.models import Attempt, Run, Series
from webapp.runs.packing import Column
from webapp.runs.readings import AT
from webapp.runs.serieskeys import Key, series_ids
from webapp.runs.states import RunState

TOKENS = 8192.0  # a step
NAMES = ("loss", "num_tokens", AT)


def make(world: World, count: int, points: int) -> list[int]:
    """Return the keys of `count` ended runs of this many steps."""
    return [_run(world, number, points).pk for number in range(count)]


def _run(world: World, number: int, points: int) -> Run:
    run = world.draft(f"long {number}")
    attempt = Attempt.objects.create(run=run, number=1)
    ids = series_ids([Key(attempt.pk, name, "step") for name in NAMES])
    steps = np.arange(1, points + 1, dtype=np.float64)
    noise = np.random.default_rng(number).normal(0, 0.05, points)
    columns = {"loss": 2 + 8 / steps + noise, "num_tokens": TOKENS * steps, AT: START + steps}
    for first in range(0, points, folding.AT_ONCE):
        part = slice(first, first + folding.AT_ONCE)
        levels.add({ids[attempt.pk, name]: Column(steps[part], column[part]) for name, column in columns.items()})
    for name, column in columns.items():
        Series.objects.filter(pk=ids[attempt.pk, name]).update(last_x=points, last_value=column[-1])
    Run.objects.filter(pk=run.pk).update(state=RunState.SUCCEEDED, step=points, total_steps=points)
    return run
