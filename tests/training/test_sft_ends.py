"""How training ends early: on request, and when the loss is no number any more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.training import ranks_harness
from tests.training.attempts import Attempts
from tests.training.launch import of_kind, recipe
from tests.training.nodejobs import until
from training.saving import checkpoints
from training.spec.events import number

pytestmark = pytest.mark.ranks


def test_a_stop_on_one_node_saves_on_all(attempts: Attempts) -> None:
    ended = attempts.stopped
    assert ended.codes == [0, 0]
    (finished,) = of_kind(ended.head, "finished")
    assert finished.data["reason"] == "stopped"
    assert finished.step is not None
    assert 0 < finished.step < 5000
    assert [checkpoints.steps(root) for root in ended.checkpoints] == [[finished.step]] * 2


def test_a_term_to_one_rank_saves_on_all(attempts: Attempts) -> None:
    asked = recipe(optimisation={"max_steps": 5000}, checkpoints={"every_steps": 5000})
    launch = attempts.launch("terminated", nodes=1, processes=2)
    plans = launch.plans(asked)
    folder = plans[0].folder
    forked = ranks_harness.start(plans)
    until(lambda: Path(folder.events).exists() and of_kind(folder, "metrics"))
    forked.ranks[1].terminate()
    assert forked.wait() == [0, 0], Path(folder.log).read_text()
    (finished,) = of_kind(folder, "finished")
    assert finished.data["reason"] == "stopped"
    assert finished.step is not None
    assert checkpoints.steps(launch.scratch(0) / "runs/1/1/checkpoints") == [finished.step]


def test_its_hours_over_it_saves_and_ends(attempts: Attempts) -> None:
    asked = recipe(optimisation={"max_steps": 5000}, checkpoints={"every_steps": 5000}, limits={"hours": 1e-9})
    launch = attempts.launch("over", nodes=1)
    plans = launch.plans(asked)
    assert ranks_harness.run(plans) == [0], Path(plans[0].folder.log).read_text()
    (finished,) = of_kind(plans[0].folder, "finished")
    assert (finished.step, finished.data["reason"]) == (1, "time_limit")
    assert checkpoints.steps(launch.scratch(0) / "runs/1/1/checkpoints") == [1]


def test_nan_is_reported_as_it_is(attempts: Attempts) -> None:
    losses = [e.data["loss"] for e in of_kind(attempts.non_finite.head, "metrics")]
    assert losses == ["NaN", "NaN"]
    assert number(losses[0]) != number(losses[0])


def test_too_many_nan_steps_end_it_without_a_save(attempts: Attempts) -> None:
    ended = attempts.non_finite
    assert ended.codes == [1, 1]
    (finished,) = of_kind(ended.head, "finished")
    assert (finished.step, finished.data["reason"]) == (2, "non_finite")
    assert checkpoints.steps(ended.checkpoints[0]) == []
