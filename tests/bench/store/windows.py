"""A window of a series of 10,000,000 points of a run that trains, as its page asks for it."""

from __future__ import annotations

import math
import random
import statistics
import time
from itertools import islice
from pathlib import Path

import numpy as np
from django.conf import settings
from django.db import transaction
from django.test import Client

from tests.webapp.rows import World, make_world
from webapp.runs import levels
from webapp.runs.each import insert_each
from webapp.runs.folding import BLOCK
from webapp.runs.models import Chunk, Run, Series
from webapp.runs.packing import Column

from .. import figures
from .folded import folded
from .ingest import METRICS

POINTS = 10_000_000
WINDOWS = 200
PX = 1500
GOAL_MS = 20.0
GOAL_KB = 60.0
NEWEST = 2 * BLOCK - 1  # lines that are not folded yet
AT_ONCE = 2000  # chunks of one transaction


def measured(engine: str, folder: Path) -> int:
    world = make_world(folder)
    began = time.perf_counter()
    run = filled(world)
    print(f"{POINTS:,} points stored in {engine} in {time.perf_counter() - began:.0f} s", flush=True)
    import webapp.asgi  # noqa: F401  # as the service: collections do not look through what it has loaded

    settings.ALLOWED_HOSTS = ["testserver"]
    page = Client()
    page.force_login(world.user)
    for low, high in _windows(random.Random(1), 10):
        _asked(page, run, low, high)
    found = [_asked(page, run, low, high) for low, high in _windows(random.Random(6), WINDOWS)]
    return _told(engine, [ms for ms, _ in found], [kb for _, kb in found])


def filled(world: World) -> Run:
    """Return a run whose loss lies in chunks, but for the newest lines, which are events: as many as there can be."""
    feed, chance = world.running("long"), random.Random(6)
    steps = range(POINTS - NEWEST + 1, POINTS + 1)
    feed.write("train@0", *(("metrics", step, {name: chance.random() for name in METRICS}) for step in steps))
    _fill(Series.objects.get(attempt=feed.run.attempt, name="loss"), POINTS - NEWEST)
    return feed.run


def _fill(row: Series, count: int) -> None:
    chance = np.random.default_rng(6)
    values = 2.0 + np.exp(-np.arange(count) / 1e6) + chance.normal(0, 0.05, count)
    values[chance.integers(0, count, 2000)] = math.nan
    steps = np.arange(1, count + 1, dtype=np.float64)
    chunks = folded(Column(steps, values), BLOCK)
    while rows := [levels.row(row.pk, part, level, loose=loose) for level, loose, part in islice(chunks, AT_ONCE)]:
        with transaction.atomic():
            insert_each(Chunk, levels.COLUMNS, rows)


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
