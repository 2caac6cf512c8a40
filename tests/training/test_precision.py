"""Mixed precision: master weights stay fp32 whatever the file holds, and bf16 is near fp32."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.training import ranks_harness
from tests.training.attempts import Attempts
from tests.training.launch import of_kind, recipe
from training.spec.folder import JobFolder

pytestmark = pytest.mark.ranks


@pytest.fixture(scope="module")
def halved(attempts: Attempts, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model as most are published: bf16 on disk."""
    folder = tmp_path_factory.mktemp("halved") / "model"
    shutil.copytree(attempts.model, folder)
    weights = load_file(folder / "model.safetensors")
    halves = {name: tensor.bfloat16() for name, tensor in weights.items()}
    save_file(halves, folder / "model.safetensors", {"format": "pt"})
    config = (folder / "config.json").read_text()
    (folder / "config.json").write_text(config.replace('"float32"', '"bfloat16"'))
    return folder


def trained(attempts: Attempts, model: Path, precision: str, masters: str = "fp32") -> JobFolder:
    launch = attempts.launch(f"halved-{precision}-{masters}", nodes=1, model=model)
    asked = recipe(
        precision=precision,
        master_weights=masters,
        optimisation={"max_steps": 3},
        checkpoints={"every_steps": 9, "at_end": False},
    )
    (plan,) = launch.plans(asked)
    assert ranks_harness.run([plan]) == [0], Path(plan.folder.log).read_text()
    return plan.folder


def formats(folder: JobFolder) -> tuple[str, ...]:
    """Return what was read back: of master weights, of what is computed, of gradients summed over ranks."""
    (started,) = of_kind(folder, "started")
    return tuple(started.data[name] for name in ("master_dtype", "compute_dtype", "reduce_dtype"))


def test_masters_are_fp32_and_losses_near_those_of_fp32(attempts: Attempts, halved: Path) -> None:
    """The sum over a step's tokens has to be fp32 as well: in bf16 its third digit is off."""
    mixed, whole = (trained(attempts, halved, precision) for precision in ("bf16", "fp32"))
    assert formats(mixed) == ("float32", "bfloat16", "float32")
    assert formats(whole) == ("float32", "float32", "float32")
    losses = [[e.data["loss"] for e in of_kind(folder, "metrics")] for folder in (mixed, whole)]
    assert losses[0] == pytest.approx(losses[1], rel=3e-4)
    assert losses[0] != losses[1], "bf16 was computed in"
    assert torch.tensor(losses[0]).bfloat16().tolist() != losses[0], "the loss itself is no bf16 number"


def test_pure_bf16_is_trained_where_it_is_asked_for(attempts: Attempts, halved: Path) -> None:
    folder = trained(attempts, halved, "bf16", "bf16")
    assert formats(folder) == ("bfloat16", "bfloat16", "bfloat16")
