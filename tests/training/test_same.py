"""Nodes that mean different runs are refused, on all alike, before anything is touched."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist

from tests.training import ranks_harness
from tests.training.attempts import Attempts
from tests.training.launch import of_kind, recipe
from training.ranks import LOADING_HOURS, Ranks
from training.same import check_same, differing, meant
from training.spec.job import TrainJob
from training.spec.plan import NodePlan


def job(node: int = 0, **changes: Any) -> TrainJob:
    fields: dict[str, Any] = {
        "recipe": recipe(model={"name": f"/disk{node}/base"}, data={"train": f"/disk{node}/rows.jsonl"}),
        "model": f"/disk{node}/base",
        "train": f"/disk{node}/rows.jsonl",
        "checkpoints": f"/disk{node}/runs/1/2/checkpoints",
        "resume_from": f"/disk{node}/runs/1/1/checkpoints/checkpoint-4",
        "events": f"/disk{node}/runs/1/2/node{node}/events.jsonl",
        "nodes": 2,
        "node_rank": node,
    }
    return TrainJob(**fields | changes)


def told(second: TrainJob) -> list[str]:
    first = meant(job())
    return [str(problem) for problem in differing([first, first, meant(second), meant(second)], [0, 0, 1, 1])]


def test_a_run_in_other_folders_is_the_same_run() -> None:
    assert told(job(1)) == []


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"checkpoints": "/x/runs/1/3/checkpoints"}, "attempt: node 1 has run-1-3 and node 0 has run-1-2. Give every"),
        ({"resume_from": ""}, "resume_from: node 1 has nothing and node 0 has 1/checkpoints/checkpoint-4. Give every"),
        ({"resume_from": "/x/1/1/checkpoints/checkpoint-6"}, "resume_from: node 1 has 1/checkpoints/checkpoint-6 and "),
        ({"fresh": ("tokens", "rng")}, "fresh: node 1 has rng, tokens and node 0 has nothing. Give every node the"),
        ({"test": "/x/test.jsonl"}, "test: node 1 has rows and node 0 has nothing. "),
        ({"recipe": recipe(optimisation={"learning_rate": 2e-3})}, "optimisation.learning_rate: node 1 has 0.002 and "),
        ({"recipe": recipe(data={"template": "a" * 200 + "b"})}, "data.template: node 1 has 'aaa"),
    ],
)
def test_what_differs_is_named_with_the_node_and_both_values(changes: dict[str, Any], text: str) -> None:
    (found,) = told(job(1, **changes))
    assert found.startswith(text)


def test_long_values_are_shown_where_they_part() -> None:
    seen = [{"data.template": "a" * 200 + end + "z" * 200} for end in ("b", "c")]
    (problem,) = differing(seen, [0, 1])
    cut = "..." + "a" * 10 + "{}" + "z" * 49 + "..."
    assert problem.reason == f"node 1 has {cut.format('c')} and node 0 has {cut.format('b')}"


def test_loading_waits_hours_and_steps_as_long_as_torch_does() -> None:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        patient = Ranks(0, 0, hours=LOADING_HOURS)
        check_same({"data": "1"}, patient)
        assert [limit(patient), limit(patient.apart()), limit(patient.apart(5.0))] == [6 * 3600, 1800, 5]
    finally:
        dist.destroy_process_group()


def limit(ranks: Ranks) -> float:
    """Return the seconds that the group of `ranks` waits."""
    return float(ranks.group._get_backend(torch.device("cpu")).options._timeout.total_seconds())


def with_recipe_of(plan: NodePlan, other: NodePlan) -> NodePlan:
    name = plan.folder.recipe.name
    return replace(plan, files={**plan.files, name: other.files[name]})


@pytest.mark.ranks
@pytest.mark.parametrize("what", ["recipe", "rows"])
def test_two_nodes_refuse_alike(attempts: Attempts, what: str) -> None:
    launch = attempts.launch(f"differ-{what}", nodes=2)
    plans = launch.plans(recipe())
    if what == "recipe":
        plans[1] = with_recipe_of(plans[1], launch.plans(recipe(optimisation={"learning_rate": 2e-3}))[1])
        text = "optimisation.learning_rate: node 1 has 0.002 and node 0 has 0.001. Give every node the same recipe."
    else:
        rows = launch.scratch(1) / "datasets" / "rows" / "train.jsonl"
        rows.write_text(rows.read_text().replace("It returns", "It yields"))
        text = "data: node 1 has "
    assert ranks_harness.run(plans) == [1, 1], Path(plans[0].folder.log).read_text()
    for plan in plans:
        (finished,) = of_kind(plan.folder, "finished")
        assert finished.data["reason"] == "configuration"
        assert finished.data["text"].startswith(text)
        assert not of_kind(plan.folder, "started")
