"""How training ends early: on request, and when the loss is no number any more."""

from __future__ import annotations

import pytest

from tests.training.attempts import Attempts
from tests.training.launch import of_kind
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


def test_nan_is_reported_as_it_is(attempts: Attempts) -> None:
    losses = [e.data["loss"] for e in of_kind(attempts.non_finite.head, "metrics")]
    assert losses == ["NaN", "NaN"]
    assert number(losses[0]) != number(losses[0])


def test_too_many_nan_steps_end_it_without_a_save(attempts: Attempts) -> None:
    ended = attempts.non_finite
    assert ended.codes == [1]
    (finished,) = of_kind(ended.head, "finished")
    assert (finished.step, finished.data["reason"]) == (2, "non_finite")
    assert checkpoints.steps(ended.checkpoints[0]) == []
