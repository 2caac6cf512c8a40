"""What needs a GPU is refused without one: by the plan, before a node is touched, and by a rank, before it loads."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.training.launch import Launch, recipe
from training.sft import check_launch
from training.spec.job import TrainJob
from training.spec.lint import Refused

NEEDS = [
    ("fsdp.version", {"fsdp": {"version": 1}}),
    ("fsdp.cpu_offload", {"fsdp": {"cpu_offload": True}}),
    ("model.attention", {"model": {"attention": "flash_attention_2"}}),
    ("optimisation.optimizer", {"fsdp": {"version": 1}, "optimisation": {"optimizer": "paged_adamw_32bit"}}),
    ("precision", {"precision": "fp16"}),
    ("method.kind", {"method": {"kind": "qlora"}, "precision": "bf16"}),
]


@pytest.mark.parametrize(("field", "asked"), NEEDS)
def test_the_plan_refuses_it_on_nodes_without_one(tmp_path: Path, field: str, asked: dict[str, object]) -> None:
    launch = Launch(tmp_path, tmp_path / "model", "rows")
    with pytest.raises(Refused) as refused:
        launch.plans(recipe(**asked))
    (problem,) = [problem for problem in refused.value.problems if problem.field == field]
    assert "GPU" in problem.reason
    assert problem.fix


@pytest.mark.parametrize(("field", "asked"), NEEDS)
def test_the_same_is_planned_where_there_are_gpus(tmp_path: Path, field: str, asked: dict[str, object]) -> None:
    launch = Launch(tmp_path, tmp_path / "model", "rows", accelerator=True)
    assert len(launch.plans(recipe(**asked))) == 2


@pytest.mark.parametrize(("field", "asked"), NEEDS)
def test_a_rank_refuses_it_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, field: str, asked: dict[str, object]
) -> None:
    """A recipe may have been planned elsewhere, or written by hand."""
    plan = Launch(tmp_path, tmp_path / "model", "rows", accelerator=True).plans(recipe(**asked))[0]
    monkeypatch.setenv("ACCELERATE_USE_FSDP", "true")
    with pytest.raises(Refused, match=f"{field}: .*GPU"):
        check_launch(TrainJob.model_validate_json(plan.files["recipe.json"]))
