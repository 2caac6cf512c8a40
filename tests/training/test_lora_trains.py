"""LoRA on real ranks: only the adapter learns, all of it is saved, and going on equals not having stopped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from tests.training import lora_ranks, ranks_harness
from tests.training.attempts import ADAPTER, STEPS, Attempts
from tests.training.launch import curve, of_kind, recipe
from training.export.distcp import Checkpoint
from training.export.manifest import MODEL_FOLDER

pytestmark = pytest.mark.ranks


def test_it_learns_and_says_what_it_trains(attempts: Attempts) -> None:
    ended = attempts.adapted
    assert ended.codes == [0, 0], Path(ended.head.log).read_text()
    losses = [e.data["loss"] for e in of_kind(ended.head, "metrics")]
    assert len(losses) == STEPS
    assert losses[-1] < losses[0] - 0.3
    (started,) = of_kind(ended.head, "started")
    # rank 4 on seven linear layers of each of five decoder layers, and the model's own 4,983,552
    assert started.data["trainable"] == 97_280
    assert started.data["parameters"] == 4_983_552 + 97_280
    assert (started.data["method"], started.data["base_dtype"], started.data["master_dtype"]) == (
        "lora", "bfloat16", "float32",
    )  # fmt: skip


def test_a_checkpoint_holds_the_whole_adapter_and_nothing_of_the_base(attempts: Attempts) -> None:
    folder = attempts.adapted.checkpoints[0] / "checkpoint-6"
    stored = Checkpoint(folder / MODEL_FOLDER)
    assert len(stored.tensors) == 70
    assert sum(torch.Size(s.shape).numel() for s in stored.tensors.values()) == 97_280
    assert stored.files() == {"__0_0.distcp", "__1_0.distcp"}
    moved = torch.cat(list(stored.blocks("base_model.model.model.layers.4.mlp.down_proj.lora_B.weight")))
    assert moved.count_nonzero() == moved.numel(), "it began as zeros, and every rank's slice has been trained"
    manifest = json.loads((folder / "manifest-0.json").read_text())
    assert "adapter_config.json" in manifest["files"]
    assert json.loads((folder / "adapter_config.json").read_text())["r"] == 4


def test_going_on_equals_the_unbroken_run(attempts: Attempts) -> None:
    resumed = attempts.adapted_resumed
    assert resumed.codes == [0, 0], Path(resumed.head.log).read_text()
    unbroken = curve(attempts.adapted.head)
    assert curve(resumed.head) == {step: unbroken[step] for step in (4, 5, 6)}


def test_every_ranks_slice_comes_back(tmp_path: Path) -> None:
    logs = [tmp_path / f"log-{rank}" for rank in range(lora_ranks.RANKS)]
    assert lora_ranks.run(tmp_path) == [0, 0], "".join(log.read_text() for log in logs)
    stored = Checkpoint(tmp_path / "saved")
    whole = torch.cat(list(stored.blocks("base_model.model.lm_head.weight")))
    assert whole[0, 0] == 1
    assert whole[-1, -1] == 2


def test_a_head_trained_whole_learns_alike_on_one_rank_and_on_two(attempts: Attempts, tmp_path: Path) -> None:
    """Its weight is read past the head's own forward, untied, and its copy of the base's is sharded."""
    untied(attempts.model, tmp_path / "untied")
    method = {**ADAPTER, "dropout": 0.0, "modules_to_save": ["lm_head"]}
    curves = []
    for ranks in (1, 2):
        launch = attempts.launch(f"whole-{ranks}", nodes=1, processes=ranks, model=tmp_path / "untied")
        how = {"per_device_batch": 4 // ranks, "max_steps": 3, "schedule": "constant", "warmup_ratio": 0.0}
        plans = launch.plans(recipe(method=method, optimisation=how, checkpoints={"every_steps": 50, "at_end": False}))
        assert ranks_harness.run(plans) == [0] * ranks, Path(plans[0].folder.log).read_text()
        curves.append([list(map(float, values)) for values in curve(plans[0].folder).values()])
    alone, together = curves
    assert alone[-1][0] < alone[0][0] - 0.5
    for one, two in zip(alone, together, strict=True):
        assert one == pytest.approx(two, rel=1e-5)


def untied(tied: Path, folder: Path) -> None:
    config = AutoConfig.from_pretrained(tied, tie_word_embeddings=False)
    torch.manual_seed(0)
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    AutoTokenizer.from_pretrained(tied).save_pretrained(folder)
