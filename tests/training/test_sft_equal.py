"""The same seed gives the same numbers, however ranks lie on nodes and however often training was resumed."""

from __future__ import annotations

import pytest

from tests.training.attempts import STEPS, Attempts
from tests.training.launch import curve, of_kind

pytestmark = pytest.mark.ranks


def test_it_trains_to_the_end(attempts: Attempts) -> None:
    ended = attempts.unbroken
    assert ended.codes == [0, 0]
    assert [e.data["reason"] for e in of_kind(ended.head, "finished")] == ["completed"]
    losses = [e.data["loss"] for e in of_kind(ended.head, "metrics")]
    assert len(losses) == STEPS
    assert losses[-1] < losses[0] - 0.5


def test_two_nodes_of_one_rank_equal_one_node_of_two(attempts: Attempts) -> None:
    assert curve(attempts.unbroken.head) == curve(attempts.one_node.head)


def test_resuming_equals_the_unbroken_run(attempts: Attempts) -> None:
    assert attempts.resumed.codes == [0, 0]
    unbroken = curve(attempts.unbroken.head)
    assert curve(attempts.resumed.head) == {step: unbroken[step] for step in (5, 6)}


def test_started_reports_what_is_so(attempts: Attempts) -> None:
    (first,) = of_kind(attempts.unbroken.head, "started")
    assert first.data == {
        "world_size": 2,
        "nodes": 2,
        "total_steps": STEPS,
        "parameters": 4983552,
        "trainable": 4983552,
        "attention": "sdpa",
        "master_dtype": "float32",
        "resumed_from": None,
    }
    assert of_kind(attempts.one_node.head, "started")[0].data["nodes"] == 1
    assert of_kind(attempts.resumed.head, "started")[0].data["resumed_from"] == 4


def test_phases_and_speeds_are_told(attempts: Attempts) -> None:
    phases = [e.data["name"] for e in of_kind(attempts.one_node.head, "phase")]
    assert phases[:3] == ["loading", "tokenising", "training"]
    assert "saving" in phases
    for event in of_kind(attempts.one_node.head, "metrics"):
        assert event.data["step_seconds"] > 0
        assert event.data["tokens_per_second"] > 0
        assert event.data["epoch"] > 0


def test_evaluations_are_told_under_plain_names(attempts: Attempts) -> None:
    found = of_kind(attempts.one_node.head, "evaluation")
    assert [e.step for e in found] == [3, 6]
    assert all(0 < e.data["loss"] < 10 for e in found)


def test_only_the_first_rank_tells_the_story(attempts: Attempts) -> None:
    second = attempts.unbroken.folders[1]
    assert {e.kind for e in of_kind(second, "checkpoint")} == {"checkpoint"}
    assert not of_kind(second, "metrics") + of_kind(second, "phase") + of_kind(second, "finished")
