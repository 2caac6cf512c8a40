"""GET /runs/{id}/series/{name}, and the reading behind it."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webapp.runs import actions, folding, lifecycle, series
from webapp.runs.models import Attempt, Chunk, Point, Run, Series
from webapp.runs.states import RunState
from webapp.runs.thinning import PER_BUCKET, thin

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
def long_series(world: World) -> tuple[Run, list[Point]]:
    run, chance = world.run(), random.Random(3)
    held = Series.objects.create(attempt=actions.launch(run, "ada"), name="loss", axis="step")
    points = [Point.of(held, float(i), chance.gauss(0, 1)) for i in range(20_000)]
    for i in (7, 7_000, 7_001, 19_998):
        points[i] = Point.of(held, float(i), math.nan if i % 2 else math.inf)
    points[12_345] = Point.of(held, 12_345.0, 1e9)
    Point.objects.bulk_create(points, batch_size=2000)
    return run, points


def test_thinned_it_keeps_extremes_ends_and_all_that_is_not_finite(long_series: tuple[Run, list[Point]]) -> None:
    run, points = long_series
    found = series.read(run, "loss", points=400)
    assert found is not None
    shown = dict(zip(found.steps, found.values, strict=True))
    assert len(shown) <= 4 * 101 + 4
    assert found.steps == sorted(found.steps)
    assert (found.steps[0], found.steps[-1]) == (0, 19_999)
    assert shown[12_345] == 1e9
    assert [step for step, value in shown.items() if isinstance(value, str)] == [7, 7_000, 7_001, 19_998]
    values = [v for v in shown.values() if not isinstance(v, str)]
    assert {min(values), max(values)} == {min(p.value for p in points if not p.odd), 1e9}


@given(
    values=st.lists(st.floats(-9, 9) | st.sampled_from(["NaN", "Infinity"]), min_size=1, max_size=60),
    width=st.floats(0.1, 70),
)
def test_of_each_bucket_the_first_least_greatest_last_and_all_odd_stay(values: list[float | str], width: float) -> None:
    rows = [(float(i), None, v) if isinstance(v, str) else (float(i), v, "") for i, v in enumerate(values)]
    found = list(thin(rows, 0.0, width))
    assert found == sorted(set(found), key=lambda row: row[0])
    assert set(found) <= set(rows)
    for bucket in {int(x / width) for x, _, _ in rows}:
        inside = [row for row in rows if int(row[0] / width) == bucket]
        shown = [row for row in found if int(row[0] / width) == bucket]
        finite = [row[1] for row in inside if row[1] is not None]
        assert (shown[0], shown[-1]) == (inside[0], inside[-1])
        assert [row for row in shown if row[2]] == [row for row in inside if row[2]]
        assert len([row for row in shown if not row[2]]) <= PER_BUCKET
        if finite:
            drawn = [row[1] for row in shown if row[1] is not None]
            assert (min(drawn), max(drawn)) == (min(finite), max(finite))


def test_a_constant_series_is_thinned_too(world: World) -> None:
    run = world.run()
    held = Series.objects.create(attempt=actions.launch(run, "ada"), name="node0/ram_total", axis="time")
    for first in range(0, 5000, 100):
        points = {1.7e9 + i: 8.0 for i in range(first, first + 100)}
        Chunk.objects.create(series=held, **folding.chunk_of(points))
    found = series.read(run, "node0/ram_total", points=100)
    assert found is not None
    assert 2 <= len(found.steps) <= 104
    assert set(found.values) == {8.0}


def test_a_series_of_nothing_finite_is_whole(world: World) -> None:
    run = world.run()
    held = Series.objects.create(attempt=actions.launch(run, "ada"), name="loss", axis="step")
    Point.objects.bulk_create([Point.of(held, float(i), math.nan) for i in range(30)])
    found = series.read(run, "loss", points=4)
    assert found is not None
    assert found.values == ["NaN"] * 30
