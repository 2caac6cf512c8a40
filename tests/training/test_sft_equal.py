"""The same seed gives the same numbers, however ranks lie on nodes and however often training was resumed."""

from __future__ import annotations

from itertools import pairwise

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
    told = dict(first.data)
    assert told.pop("loading_seconds") > 0
    assert [1e8 < peak < 2e9 for peak in told.pop("peak_ram")] == [True, True]
    assert told == {
        "world_size": 2,
        "nodes": 2,
        "total_steps": STEPS,
        "parameters": 4983552,
        "trainable": 4983552,
        "attention": "sdpa",
        "master_dtype": "float32",
        "compute_dtype": "float32",
        "reduce_dtype": "float32",
        "units": 6,
        "wrapped": {"LlamaDecoderLayer": 5, "Embedding": 1, "LlamaRMSNorm": 1, "Linear": 1},
        "loading": "slices",
        "resumed_from": None,
    }
    assert of_kind(attempts.one_node.head, "started")[0].data["nodes"] == 1
    assert of_kind(attempts.resumed.head, "started")[0].data["resumed_from"] == 4


def test_phases_are_told(attempts: Attempts) -> None:
    phases = [e.data["name"] for e in of_kind(attempts.one_node.head, "phase")]
    assert phases[:3] == ["tokenising", "loading", "training"]
    (told,) = of_kind(attempts.one_node.head, "data")  # by the job's first step, once for both ranks
    assert (told.data["rows"], told.data["test"]["rows"], told.data["made"]) == (60, 6, True)
    assert "saving" in phases


def test_the_cost_of_each_step_is_told(attempts: Attempts) -> None:
    lines = of_kind(attempts.one_node.head, "metrics")
    parts = [{name: value for name, value in e.data.items() if name.endswith("_seconds")} for e in lines]
    for found in parts:
        whole = found.pop("step_seconds")
        assert whole == pytest.approx(sum(found.values()))
        assert found["forward_backward_seconds"] > 0
        assert found["optimizer_seconds"] > 0
    # what follows a step's line is in the next one
    assert [e.step for e, found in zip(lines, parts, strict=True) if "save_seconds" in found] == [4]
    assert [e.step for e, found in zip(lines, parts, strict=True) if "evaluation_seconds" in found] == [4]
    tokens = [e.data["tokens_per_second"] * e.data["step_seconds"] for e in lines]
    both = list(pairwise([0.0, *(e.data["num_tokens"] for e in lines)]))
    assert tokens == pytest.approx([later - earlier for earlier, later in both]), "over both ranks, padding left out"
    assert all(0 < e.data["trained_tokens_per_second"] < e.data["tokens_per_second"] for e in lines)
    assert all(e.data["host_memory_peak"] >= e.data["host_memory"] > 1e8 for e in lines)
    assert all(e.data["epoch"] > 0 for e in lines)
    assert "mfu" not in lines[0].data, "a processor's peak is not known"


def test_evaluations_are_told_under_plain_names(attempts: Attempts) -> None:
    found = of_kind(attempts.one_node.head, "evaluation")
    assert [e.step for e in found] == [3, 6]
    assert all(0 < e.data["loss"] < 10 for e in found)


def test_only_the_first_rank_tells_the_story(attempts: Attempts) -> None:
    second = attempts.unbroken.folders[1]
    assert {e.kind for e in of_kind(second, "checkpoint")} == {"checkpoint"}
    assert not of_kind(second, "metrics") + of_kind(second, "phase") + of_kind(second, "finished")
