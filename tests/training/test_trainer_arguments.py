"""What of the recipe becomes which of the trainer's arguments, and how long a run is."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from trl import SFTConfig

from tests.training.launch import recipe
from training.spec.length import total_steps
from training.spec.trainer import trainer_arguments


def arguments(**overrides: object) -> dict[str, Any]:
    return trainer_arguments(
        recipe(**overrides), checkpoints="/s/runs/41/2/checkpoints", evaluates=True, accelerator=True
    )


def test_every_name_is_one_of_the_trainers() -> None:
    assert set(arguments()) <= {field.name for field in dataclasses.fields(SFTConfig)}


def test_the_optimizer_is_as_the_recipe_says() -> None:
    found = arguments(
        optimisation={"optimizer": "adamw_torch_fused", "betas": [0.85, 0.95], "epsilon": 1e-6, "schedule": "linear"}
    )
    assert (found["adam_beta1"], found["adam_beta2"], found["adam_epsilon"]) == (0.85, 0.95, 1e-6)
    assert (found["optim"], found["lr_scheduler_type"]) == ("adamw_torch_fused", "linear")


def test_warm_up_is_steps_or_a_share() -> None:
    assert arguments(optimisation={"warmup_ratio": 0.2})["warmup_steps"] == 0.2
    assert arguments(optimisation={"warmup_ratio": 0.2, "warmup_steps": 3})["warmup_steps"] == 3


def test_epochs_count_in_place_of_steps() -> None:
    assert "num_train_epochs" not in arguments()
    found = arguments(optimisation={"epochs": 1.5, "max_steps": 7})
    assert (found["max_steps"], found["num_train_epochs"]) == (-1, 1.5)


@pytest.mark.parametrize(
    ("precision", "flags"), [("bf16", (True, False)), ("fp16", (False, True)), ("fp32", (False, False))]
)
def test_precision_sets_one_flag(precision: str, flags: tuple[bool, bool]) -> None:
    found = arguments(precision=precision)
    assert (found["bf16"], found["fp16"]) == flags


def test_trackers_are_told_the_run() -> None:
    assert arguments()["report_to"] == []
    found = arguments(trackers={"names": ["wandb", "mlflow"], "project": "mine"})
    assert (found["report_to"], found["project"], found["run_name"]) == (["wandb", "mlflow"], "mine", "run-41-2")


@pytest.mark.parametrize(
    ("epochs", "rows", "ranks", "steps"),
    [(0, 10, 1, 6), (1, 60, 2, 8), (1.5, 60, 2, 12), (1, 61, 2, 8), (1, 65, 2, 9), (0.01, 60, 2, 1), (2, 1, 8, 2)],
)
def test_steps_of_a_run(epochs: float, rows: int, ranks: int, steps: int) -> None:
    how = recipe(optimisation={"epochs": epochs, "per_device_batch": 2, "accumulation": 2})
    assert total_steps(how, rows=rows, ranks=ranks) == steps
