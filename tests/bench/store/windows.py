"""A window of a series of 10,000,000 points, as a run page asks for it."""

from __future__ import annotations

import math
import random
import statistics
import time
from pathlib import Path

import numpy as np
from django.conf import settings
from django.db import transaction
from django.test import Client

from tests.webapp.rows import make_world
from webapp.runs import actions, levels
from webapp.runs.models import Run, Series
from webapp.runs.packing import Column

from .. import figures

POINTS = 10_000_000
WINDOWS = 200
PX = 1500
GOAL_MS = 20.0
GOAL_KB = 60.0
FOLDED = 240  # points of a chunk as the fold makes it
AT_ONCE = 200  # chunks of one transaction


def measured(engine: str, folder: Path) -> int:
    world = make_world(folder)
    run = world.draft()
    row = Series.objects.create(attempt=actions.launch(run, "bench"), name="loss", axis="step")
    began = time.perf_counter()
    _fill(row)
    print(f"{POINTS:,} points folded into {engine} in {time.perf_counter() - began:.0f} s", flush=True)
    settings.ALLOWED_HOSTS = ["testserver"]
    page = Client()
    page.force_login(world.user)
    for low, high in _windows(random.Random(1), 10):
        _asked(page, run, low, high)
    found = [_asked(page, run, low, high) for low, high in _windows(random.Random(6), WINDOWS)]
    return _told(engine, [ms for ms, _ in found], [kb for _, kb in found])


def _fill(row: Series) -> None:
    chance = np.random.default_rng(6)
    values = 2.0 + np.exp(-np.arange(POINTS) / 1e6) + chance.normal(0, 0.05, POINTS)
    values[chance.integers(0, POINTS, 2000)] = math.nan
    steps = np.arange(1, POINTS + 1, dtype=np.float64)
    for first in range(0, POINTS, FOLDED * AT_ONCE):
        with transaction.atomic():
            for at in range(first, min(first + FOLDED * AT_ONCE, POINTS), FOLDED):
                levels.add({row.pk: Column(steps[at : at + FOLDED], values[at : at + FOLDED])})


def _windows(chance: random.Random, count: int) -> list[tuple[float, float]]:
    """Return windows of any width, from a screen of single points to the whole: as many of each order of magnitude."""
    widths = [PX * (POINTS / PX) ** chance.random() for _ in range(count)]
    lows = [chance.uniform(0, POINTS - width) for width in widths]
    return list(zip(lows, (low + width for low, width in zip(lows, widths, strict=True)), strict=True))


def _asked(page: Client, run: Run, low: float, high: float) -> tuple[float, float]:
    """Return the milliseconds and the kilobytes (of 1,000 bytes) of an answer, as JSON, not deflated."""
    address = f"/runs/{run.pk}/series.json?name=loss&points={PX}&from={low}&to={high}"
    began = time.perf_counter()
    answer = page.get(address)
    took = time.perf_counter() - began
    assert answer.status_code == 200, answer.content
    assert len(answer.json()["series"]["loss"]["points"]) > PX / 2
    return took * 1e3, len(answer.content) / 1e3


def _told(engine: str, times: list[float], sizes: list[float]) -> int:
    loads, of = [figures.load()], f"{WINDOWS} windows of any width, {engine}"
    lines = [
        figures.verdict(f"median of {of}", [statistics.median(times)], GOAL_MS, loads, digits=1),
        figures.verdict(f"99th percentile of {of}", [figures.percentile(times, 0.99)], GOAL_MS, loads, digits=1),
        figures.verdict(f"most bytes of {of}", [max(sizes)], GOAL_KB, loads, unit="kB", digits=1),
    ]
    for line, _ in lines:
        print(line, flush=True)
    return 0 if all(holds for _, holds in lines) else 1
