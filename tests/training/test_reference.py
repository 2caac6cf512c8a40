"""The reference recipe's own settings, one a line, in what the 70B presets render to."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from training.spec import presets
from training.spec.plan import Launch, NodeSlot, Target, plan_attempt
from training.spec.trainer import trainer_arguments

TWO_NODES, ONE_NODE = "llama-2-70b-2x8-a100", "llama-2-70b-1x8-a100"

FSDP = {
    "fsdp_version": 1,
    "fsdp_sharding_strategy": "FULL_SHARD",
    "fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
    "fsdp_state_dict_type": "SHARDED_STATE_DICT",
    "fsdp_cpu_ram_efficient_loading": True,
    "fsdp_sync_module_states": True,
    "fsdp_offload_params": False,
    "fsdp_activation_checkpointing": True,
}
TRAINER = {
    "bf16": True,
    "fp16": False,
    "learning_rate": 5e-5,
    "lr_scheduler_type": "cosine",
    "warmup_steps": 0.03,
    "weight_decay": 0.01,
    "per_device_train_batch_size": 1,
    "gradient_accumulation_steps": 1,
    "max_steps": 500,
    "logging_steps": 25,
    "eval_strategy": "steps",
    "eval_steps": 100,
    "save_strategy": "steps",
    "save_steps": 250,
    "max_length": 2048,
    "packing": True,
}


def launched(name: str) -> list[dict[str, Any]]:
    """Return accelerate.yaml of each node."""
    preset = presets.load(name)
    slots = [NodeSlot(f"n{n}", f"10.0.0.{n}", "/py", "/scratch", preset.processes, True) for n in range(preset.nodes)]
    target = Target("meta-llama/Llama-2-70b-chat-hf", "d" * 64, has_test=True)
    plans = plan_attempt(preset.recipe, target, slots, Launch(1, 1, 29500, "r"))
    return [yaml.safe_load(plan.files["accelerate.yaml"]) for plan in plans]


def trainer(name: str) -> dict[str, Any]:
    recipe = presets.load(name).recipe
    return trainer_arguments(recipe, checkpoints="/s/runs/1/1/checkpoints", evaluates=True, accelerator=True)


@pytest.mark.parametrize("name", [TWO_NODES, ONE_NODE])
@pytest.mark.parametrize(("setting", "value"), FSDP.items())
def test_fsdp(name: str, setting: str, value: object) -> None:
    assert {config["fsdp_config"][setting] for config in launched(name)} == {value}


@pytest.mark.parametrize("name", [TWO_NODES, ONE_NODE])
@pytest.mark.parametrize(("setting", "value"), TRAINER.items())
def test_trainer(name: str, setting: str, value: object) -> None:
    assert trainer(name)[setting] == value


@pytest.mark.parametrize(("name", "optimizer"), [(TWO_NODES, "adamw_torch"), (ONE_NODE, "paged_adamw_32bit")])
def test_optimizer(name: str, optimizer: str) -> None:
    assert trainer(name)["optim"] == optimizer


def test_launch_over_two_nodes() -> None:
    assert [(c["num_machines"], c["num_processes"], c["machine_rank"]) for c in launched(TWO_NODES)] == [
        (2, 16, 0),
        (2, 16, 1),
    ]
    assert {(c["main_process_ip"], c["main_process_port"]) for c in launched(TWO_NODES)} == {("10.0.0.0", 29500)}
    assert {c["mixed_precision"] for c in launched(TWO_NODES)} == {"bf16"}


def test_launch_on_one_node() -> None:
    assert [(c["num_machines"], c["num_processes"]) for c in launched(ONE_NODE)] == [(1, 8)]


@pytest.mark.parametrize("name", [TWO_NODES, ONE_NODE])
def test_the_rest_of_it(name: str) -> None:
    recipe = presets.load(name).recipe
    assert recipe.model.attention == "flash_attention_2"
    assert (recipe.data.format, recipe.data.text_field) == ("text", "content")
    assert recipe.export.at_end
    assert trainer(name)["activation_checkpointing"] is False, "FSDP's own does it, in one place"
