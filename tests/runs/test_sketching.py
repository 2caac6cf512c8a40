"""The small curve that grows with its run."""

from __future__ import annotations

import math
import random

from webapp.runs.sketching import MOST, Drawn, drawn_on


def test_a_long_run_stays_small_and_keeps_its_ends() -> None:
    found = Drawn()
    for step in range(10, 100_001, 10):
        found = drawn_on(found, 1, -math.inf, {float(step): 1 / step})
        assert len(found.curve) <= MOST
    assert len(found.curve) > MOST // 2
    assert found.curve[0] == [10.0, 0.1]
    assert (found.step, found.last) == (100_000.0, 1e-05)
    steps = [x for x, _ in found.curve]
    assert steps == sorted(steps)


def test_the_same_points_in_any_batches_draw_the_same() -> None:
    """Lines come twice, late and together."""
    points = {float(x): math.nan if x == 700 else 1 + 1 / x for x in range(1, 1500)}
    whole = drawn_on(Drawn(), 1, -math.inf, points)
    chance, found, order = random.Random(3), Drawn(), list(points)
    batches = [order[i : i + 100] for i in range(0, len(order), 100)]
    for batch in [*batches, *chance.sample(batches, 5)]:
        found = drawn_on(found, 1, -math.inf, {x: points[x] for x in batch})
    assert found == whole
    assert [700.0, "NaN"] in whole.curve


def test_a_newer_attempt_replaces_what_lies_past_its_checkpoint() -> None:
    first = drawn_on(Drawn(), 1, -math.inf, {float(x): 2.0 for x in range(1, 21)})
    second = drawn_on(first, 2, 10.0, {11.0: 5.0})
    assert [x for x, _ in second.curve] == [float(x) for x in range(1, 12)]
    assert (second.step, second.last) == (11.0, 5.0)
    assert drawn_on(second, 1, -math.inf, {21.0: 9.0}) == second
    afresh = drawn_on(second, 3, -math.inf, {1.0: math.inf})
    assert (afresh.curve, afresh.last) == ([[1.0, "Infinity"]], "Infinity")
