"""GET /runs/{id}/series/{name}, and the reading behind it."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webapp.runs import actions, levels, lifecycle, series
from webapp.runs.each import insert_each
from webapp.runs.models import Attempt, Chunk, Run, Series
from webapp.runs.packing import Column
from webapp.runs.states import RunState
from webapp.runs.thinning import FEW_ODD, PER_BUCKET, cut, joined, picked
from webapp.runs.tower import tower

from .conftest import Caller, Feed, World, checkpoint, metrics, refused, strictly


def ended(run: Run) -> None:
    lifecycle.move(run, RunState.FAILED, actor="test", cause="test")


def resumed(run: Run, attempt: Attempt, step: int) -> Attempt:
    return actions.resume(run, "ada", checkpoint(attempt, step))


def test_it_works(call: Caller, world: World, feed: Feed) -> None:
    run = world.run()
    feed(actions.launch(run, "ada"), metrics((1, 1.2), (2, "NaN"), (3, "Infinity"), (4, "-Infinity"), (5, 0.9)))
    assert strictly(call.get(f"/runs/{run.pk}/series/loss")) == {
        "name": "loss",
        "axis": "step",
        "steps": [1, 2, 3, 4, 5],
        "values": [1.2, "NaN", "Infinity", "-Infinity", 0.9],
    }


def test_a_name_with_a_slash_and_the_axis_of_time(call: Caller, world: World, feed: Feed) -> None:
    run = world.run()
    data = {"ram_used": 5, "gpus": [{"index": 3, "used": 7}]}
    feed(actions.launch(run, "ada"), [("sample", None, data)], "node@1")
    assert strictly(call.get(f"/runs/{run.pk}/series/node1/ram_used"))["values"] == [5.0]
    body = strictly(call.get(f"/runs/{run.pk}/series/node1/gpu3/used"))
    assert (body["axis"], body["steps"], body["values"]) == ("time", [1000.0], [7.0])


def test_a_series_that_is_none(call: Caller, world: World, feed: Feed) -> None:
    run = world.run()
    feed(actions.launch(run, "ada"), metrics((1, 1.0)))
    assert "no such series" in refused(call.get(f"/runs/{run.pk}/series/lost"), 404, "name")
    refused(call.get(f"/runs/{run.pk}/series/%00"), 404, "name")
    refused(call.get(f"/runs/{run.pk}/series/loss?points=3"), 422, "points")


def test_a_resumed_attempt_takes_over_from_its_step_on(world: World, feed: Feed) -> None:
    run = world.run(total_steps=300)
    first = actions.launch(run, "ada")
    feed(first, metrics(*[(i, 1.0) for i in range(1, 213)]))
    ended(run)
    second = resumed(run, first, 200)
    feed(second, metrics(*[(i, 2.0) for i in range(201, 301)]))
    found = series.read(run, "loss")
    assert found is not None
    assert found.steps == list(range(1, 301))
    assert found.values == [1.0] * 200 + [2.0] * 100
    assert series.last_metrics(run) == {"loss": 2.0}


def test_an_attempt_that_was_passed_over_is_not_in_it(world: World, feed: Feed) -> None:
    run = world.run(total_steps=300)
    first = actions.launch(run, "ada")
    feed(first, metrics(*[(i, 1.0) for i in range(1, 7)]))
    ended(run)
    second = resumed(run, first, 2)
    feed(second, metrics((3, 2.0), (4, 2.0)))
    ended(run)
    third = actions.resume(run, "ada", checkpoint(first, 5))
    feed(third, metrics((6, 3.0)))
    found = series.read(run, "loss")
    assert found is not None
    assert found.values == [1.0] * 5 + [3.0]


def test_the_tail_goes_as_soon_as_the_run_is_resumed(world: World, feed: Feed) -> None:
    run = world.run(total_steps=300)
    first = actions.launch(run, "ada")
    feed(first, metrics((1, 1.0), (2, 1.5), (3, 9.0)))
    ended(run)
    resumed(run, first, 2)
    assert series.last_metrics(run) == {"loss": 1.5}


def test_a_checkpoint_from_before_the_first_resume_cuts_both(world: World, feed: Feed) -> None:
    run = world.run(total_steps=300)
    first = actions.launch(run, "ada")
    feed(first, metrics(*[(i, 1.0) for i in range(1, 7)]))
    early = checkpoint(first, 2)
    ended(run)
    second = resumed(run, first, 4)
    feed(second, metrics((5, 2.0)))
    ended(run)
    feed(actions.resume(run, "ada", early), metrics((3, 3.0)))
    found = series.read(run, "loss")
    assert found is not None
    assert found.values == [1.0, 1.0, 3.0]


def test_late_points_are_sorted_in_and_one_step_is_one_point(world: World, feed: Feed) -> None:
    run = world.run()
    feed(actions.launch(run, "ada"), metrics((3, 3.0), (1, 1.0), (2, 2.0), (3, 4.0)))
    found = series.read(run, "loss")
    assert found is not None
    assert (found.steps, found.values) == ([1, 2, 3], [1.0, 2.0, 4.0])


@pytest.fixture
def long_series(world: World) -> tuple[Run, Column]:
    run, chance = world.run(), random.Random(3)
    held = Series.objects.create(attempt=actions.launch(run, "ada"), name="loss", axis="step")
    values = [chance.gauss(0, 1) for _ in range(20_000)]
    for i in (7, 7_000, 7_001, 19_998):
        values[i] = math.nan if i % 2 else math.inf
    values[12_345] = 1e9
    column = Column.of(enumerate(values))
    for first in range(0, 20_000, 50):
        levels.add({held.pk: cut(column, first, first + 50)})
    return run, column


def test_thinned_it_keeps_extremes_ends_and_all_that_is_not_finite(long_series: tuple[Run, Column]) -> None:
    run, column = long_series
    found = series.read(run, "loss", points=400)
    assert found is not None
    shown = dict(zip(found.steps, found.values, strict=True))
    assert len(shown) <= 4 * 101 + 4
    assert found.steps == sorted(found.steps)
    assert (found.steps[0], found.steps[-1]) == (0, 19_999)
    assert shown[12_345] == 1e9
    assert [step for step, value in shown.items() if isinstance(value, str)] == [7, 7_000, 7_001, 19_998]
    values = [v for v in shown.values() if not isinstance(v, str)]
    assert {min(values), max(values)} == {column.values[np.isfinite(column.values)].min(), 1e9}


@pytest.mark.parametrize(("low", "high"), [(0.0, 19_999.0), (3000.5, 3090.5), (6999.0, 7001.0), (500.0, 15_000.0)])
def test_a_window_shows_what_is_in_it(long_series: tuple[Run, Column], low: float, high: float) -> None:
    run, column = long_series
    found = series.read(run, "loss", 40, low, high)
    assert found is not None
    shown = {x: v for x, v in zip(found.steps, found.values, strict=True) if low <= x <= high}
    inside = {x: v for x, v in zip(*column, strict=True) if low <= x <= high}
    assert all(isinstance(v, str) or v == inside[x] for x, v in shown.items())
    assert [x for x, v in shown.items() if isinstance(v, str)] == [x for x, v in inside.items() if not math.isfinite(v)]
    if finite := [v for v in inside.values() if math.isfinite(v)]:
        drawn = [v for v in shown.values() if not isinstance(v, str)]
        assert (min(drawn), max(drawn)) == (min(finite), max(finite))
    assert len(shown) <= 44 or shown.keys() == inside.keys()


@pytest.mark.parametrize(("low", "high"), [(100.5, 200.5), (-5.0, 0.5), (959.0, 960.0), (19_998.5, 1e12), (41.2, 41.8)])
def test_a_window_s_lines_reach_its_edges(long_series: tuple[Run, Column], low: float, high: float) -> None:
    found = series.read(long_series[0], "loss", 1500, low, high)
    assert found is not None
    first, last = max(0, math.ceil(low) - 1), min(19_999, math.floor(high) + 1)
    assert found.steps == list(range(first, last + 1))


def test_a_line_reaches_into_the_attempt_that_was_resumed(world: World) -> None:
    run = world.run()
    first = actions.launch(run, "ada")
    held = Series.objects.create(attempt=first, name="loss", axis="step")
    levels.add({held.pk: Column.of((step, 1.0) for step in range(1, 7))})
    ended(run)
    newer = Series.objects.create(attempt=resumed(run, first, 4), name="loss", axis="step")
    levels.add({newer.pk: Column.of((step, 2.0) for step in range(5, 9))})
    for low, high, steps in ((5, 6, [4, 5, 6, 7]), (3, 4, [2, 3, 4, 5]), (1, 8, [1, 2, 3, 4, 5, 6, 7, 8])):
        found = series.read(run, "loss", 1500, low, high)
        assert found is not None
        assert found.steps == steps


def test_a_window_between_two_chunks_of_a_level_shows_what_is_below(world: World) -> None:
    run = world.run()
    held = Series.objects.create(attempt=actions.launch(run, "ada"), name="loss", axis="step")
    column = Column.of((step, float(step % 7)) for step in range(70_000))
    rows = [levels.row(held.pk, part, level, loose=loose) for level, loose, part in tower(column)]
    insert_each(Chunk, levels.COLUMNS, rows)
    ends = [(row[3], row[4]) for row in rows if row[1:3] == (1, False)]
    gaps = [(last + 1, first - 1) for (_, last), (first, _) in pairwise(ends) if first - last > 2]
    assert gaps, "else nothing is tried"
    for low, high in gaps:
        found = series.read(run, "loss", 1500, low, high)
        assert found is not None
        assert found.steps == list(range(int(low) - 1, int(high) + 2))


VALUES = st.sampled_from([-2.0, -1.0, 0.0, 1.0, 2.0, 3.0, math.nan, math.inf, -math.inf])


@given(st.lists(st.lists(VALUES, min_size=1, max_size=6), min_size=1, max_size=5), st.booleans())
def test_of_each_bucket_the_ends_and_extremes_and_what_is_odd_stay(buckets: list[list[float]], few: bool) -> None:
    column = Column.of(enumerate(value for bucket in buckets for value in bucket))
    starts = np.cumsum([0, *map(len, buckets[:-1])])
    found = picked(column, starts, FEW_ODD if few else 0)
    assert (np.diff(found.xs) > 0).all()
    assert all(repr(column.values[int(x)]) == repr(value) for x, value in zip(*found, strict=True))
    for first, bucket in zip(starts, buckets, strict=True):
        shown = {int(x) - first for x in found.xs if first <= x < first + len(bucket)}
        finite = [i for i, value in enumerate(bucket) if math.isfinite(value)]
        odd = [i for i, value in enumerate(bucket) if not math.isfinite(value)]
        extremes = {min(finite, key=bucket.__getitem__), max(finite, key=bucket.__getitem__)} if finite else set()
        assert shown == {0, len(bucket) - 1} | extremes | {*(odd if few else odd[:1] + odd[-1:])}
        assert len(shown - set(odd)) <= PER_BUCKET


@given(st.lists(st.lists(st.tuples(st.integers(0, 9), st.sampled_from([1.0, 2.0])), max_size=6), max_size=5))
def test_of_one_x_the_later_one_stays(parts: list[list[tuple[int, float]]]) -> None:
    columns = [Column.of(sorted(dict(part).items())) for part in parts]
    wanted = {x: value for part in parts for x, value in dict(part).items()}
    found = joined(columns)
    assert list(zip(found.xs.tolist(), found.values.tolist(), strict=True)) == sorted(wanted.items())


def test_a_constant_series_is_thinned_too(world: World) -> None:
    run = world.run()
    held = Series.objects.create(attempt=actions.launch(run, "ada"), name="node0/ram_total", axis="time")
    for first in range(0, 5000, 100):
        levels.add({held.pk: Column.of((1.7e9 + i, 8.0) for i in range(first, first + 100))})
    found = series.read(run, "node0/ram_total", points=100)
    assert found is not None
    assert 2 <= len(found.steps) <= 104
    assert set(found.values) == {8.0}


def test_a_series_of_nothing_finite_is_whole(world: World) -> None:
    run = world.run()
    held = Series.objects.create(attempt=actions.launch(run, "ada"), name="loss", axis="step")
    levels.add({held.pk: Column.of((i, math.nan) for i in range(30))})
    found = series.read(run, "loss", points=4)
    assert found is not None
    assert found.values == ["NaN"] * 30
