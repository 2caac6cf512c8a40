"""The harness trains as a real launch does, and on one rank."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.training import ranks_harness
from tests.training.attempts import STEPS, Attempts
from tests.training.launch import curve, of_kind, recipe

pytestmark = pytest.mark.ranks


def test_two_forked_ranks_equal_two_launched_ones(attempts: Attempts) -> None:
    plans = attempts.launch("forked", nodes=1, processes=2).plans(recipe(checkpoints={"every_steps": 50}))
    assert ranks_harness.run(plans) == [0, 0], Path(plans[0].folder.log).read_text()
    assert curve(plans[0].folder) == curve(attempts.one_node.head)


def test_one_rank_is_enough_on_cpu(attempts: Attempts) -> None:
    plans = attempts.launch("alone", nodes=1).plans(recipe(checkpoints={"every_steps": 50}))
    assert ranks_harness.run(plans) == [0], Path(plans[0].folder.log).read_text()
    (started,) = of_kind(plans[0].folder, "started")
    assert started.data["world_size"] == 1
    assert len(curve(plans[0].folder)) == STEPS


def test_a_killed_rank_ends_the_others(attempts: Attempts) -> None:
    plans = attempts.launch("killed", nodes=1, processes=2).plans(recipe())
    forked = ranks_harness.start(plans)
    forked.ranks[1].kill()
    first, second = forked.wait()
    assert first != 0
    assert second == -9
