"""How many bytes a checkpoint takes: foreseen from a model's files alone, held against what was really written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.training.attempts import ADAPTER, Attempts
from tests.training.launch import recipe
from training.modelfacts import shapes
from training.ranks import Ranks
from training.saving import checkpoints, removal, room
from training.spec.bytes_on_disk import Shape, Trained, checkpoint_bytes, node_share, trained
from training.spec.recipe import Recipe

GOAL = 0.05  # share of the real bytes that an estimate may be off

CASES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("untied, fp32", {}, {}),
    ("tied, fp32", {"tie_word_embeddings": True}, {}),
    ("untied, bf16", {}, {"precision": "bf16", "master_weights": "bf16"}),
    ("tied, bf16", {"tie_word_embeddings": True}, {"precision": "bf16", "master_weights": "bf16"}),
    ("LoRA", {}, {"method": {"kind": "lora", "rank": 16}}),
    ("LoRA on two layers", {}, {"method": {"kind": "lora", "rank": 64, "target_modules": ["q_proj", "down_proj"]}}),
]


@pytest.mark.parametrize(("name", "config", "asked"), CASES, ids=[name for name, _, _ in CASES])
def test_it_is_near_what_is_written(
    ranks: Ranks, tmp_path: Path, name: str, config: dict[str, Any], asked: dict[str, Any]
) -> None:
    model = build(tmp_path / "base", **config)
    wanted = recipe(**asked)
    from training.adapters.wrap import adapt

    written = save(model, wanted, tmp_path / "checkpoint-1", ranks)
    shape = Shape.of(shapes(tmp_path / "base"))
    assert shape
    foreseen = checkpoint_bytes(trained(shape, wanted), wanted, 1)
    assert foreseen == pytest.approx(written, rel=GOAL)
    live = room.trained(adapt(build(tmp_path / "again", **config), wanted) if wanted.method.adapts else model)
    assert live == trained(shape, wanted)  # as the ranks count it, with the model before them


def build(folder: Path, **config: Any) -> Any:
    """Save a Llama of uneven sizes as a base model and return it."""
    from transformers import LlamaConfig, LlamaForCausalLM

    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=4097, hidden_size=128, intermediate_size=352, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, **config,
        )
    )  # fmt: skip
    model.save_pretrained(folder)
    return model


def save(model: Any, wanted: Recipe, folder: Path, ranks: Ranks) -> int:
    """Take a step and write the sharded state as training does; return the bytes."""
    import torch
    from accelerate import FullyShardedDataParallelPlugin
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    from training.saving import states
    from training.saving.snapshot import Snapshot

    layers = list(model.model.layers)
    if wanted.method.adapts:
        from training.adapters.wrap import adapt

        model = adapt(model, wanted)
    elif wanted.master_weights == "bf16":
        model = model.to(torch.bfloat16)
    mesh = init_device_mesh("cpu", (1,))
    for layer in layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    moved = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(moved)
    for parameter in moved:
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    state = states.sharded(model, optimizer, FullyShardedDataParallelPlugin(fsdp_version=2))
    return sum(facts.size for facts in Snapshot(state, {}).write(folder, ranks.group).values())


@pytest.mark.ranks
def test_so_it_is_of_real_attempts(attempts: Attempts) -> None:
    """On two ranks, with every small file; private disks have half each."""
    shape = Shape.of(shapes(attempts.model))
    assert shape
    whole, adapter = recipe(), recipe(method=ADAPTER, precision="bf16")
    foreseen = checkpoint_bytes(trained(shape, whole), whole, 2)
    assert foreseen == pytest.approx(removal.size(attempts.one_node.checkpoints[0] / "checkpoint-6"), rel=GOAL)
    for root in attempts.unbroken.checkpoints:
        assert node_share(foreseen, 1, 2) == pytest.approx(removal.size(root / "checkpoint-6"), rel=GOAL)
    small = checkpoint_bytes(trained(shape, adapter), adapter, 2)
    assert small == pytest.approx(removal.size(attempts.adapted.checkpoints[0] / "checkpoint-6"), rel=GOAL)
    manifest = checkpoints.read_manifest(attempts.one_node.checkpoints[0] / "checkpoint-6", 0)
    assert manifest
    assert manifest.bytes == pytest.approx(foreseen, rel=GOAL)


def test_a_70b_model_in_numbers() -> None:
    """By hand: 68.98e9 parameters, 4 bytes of weights and 8 of moments each, on 16 ranks."""
    wanted = recipe()
    found = checkpoint_bytes(Trained(68_976_648_192, 723), wanted, 16)
    assert found == pytest.approx(12 * 68_976_648_192, rel=1e-3)
    eight_bit = recipe(optimisation={"optimizer": "paged_adamw_8bit"}, fsdp={"version": 1})
    assert checkpoint_bytes(Trained(10**9, 300), eight_bit, 16) == pytest.approx(6.03e9, rel=0.01)


def test_no_shape_told_is_none() -> None:
    assert Shape.of(None) is None
    assert Shape.of({}) is None
