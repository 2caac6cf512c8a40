"""Which model a folder holds: a copy is the same, a fine-tune of it is not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from training.loading.identity import BLOCK, config_digest, model_digest, sampled, weights_in

NAMES = ("embed", "layer", "scale")


def tensors(**changes: float) -> dict[str, torch.Tensor]:
    sizes = {"embed": (300, 64), "layer": (7, 3), "scale": ()}
    return {name: torch.full(sizes[name], 1.0 + changes.get(name, 0.0)) for name in NAMES}


def model(folder: Path, **changes: float) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    save_file(tensors(**changes), folder / "model.safetensors", {"format": "pt"})
    return folder


def test_a_copy_is_the_same_model(tmp_path: Path) -> None:
    first = model(tmp_path / "first")
    assert model_digest(first) == model_digest(Path(shutil.copytree(first, tmp_path / "copy")))


@pytest.mark.parametrize("name", NAMES)
def test_a_change_of_any_one_tensor_is_seen(tmp_path: Path, name: str) -> None:
    first, tuned = model(tmp_path / "first"), model(tmp_path / "tuned", **{name: 0.5})
    files = [folder / "model.safetensors" for folder in (first, tuned)]
    assert files[0].stat().st_size == files[1].stat().st_size
    assert model_digest(first) != model_digest(tuned)


def test_configuration_index_and_names_of_tensors_count(tmp_path: Path) -> None:
    first = model(tmp_path / "first")
    before, weights = model_digest(first), weights_in(first)
    (first / "config.json").write_text('{"rope_theta": 1}')
    assert model_digest(first) != before
    assert weights_in(first) == weights
    (first / "model.safetensors.index.json").write_text('{"weight_map": {"embed": "model.safetensors"}}')
    assert set(weights_in(first)) == {"model.safetensors", "model.safetensors.index.json"}
    renamed = {f"{name[:-1]}x": tensor for name, tensor in tensors().items()}
    save_file(renamed, first / "model.safetensors", {"format": "pt"})
    assert weights_in(first)["model.safetensors"] != weights["model.safetensors"]


def test_code_counts_where_it_is_run(tmp_path: Path) -> None:
    folder = model(tmp_path / "first")
    before = [config_digest(folder, code=code) for code in (False, True)]
    (folder / "modeling.py").write_text("x = 1")
    after = [config_digest(folder, code=code) for code in (False, True)]
    assert (before[0] == after[0], before[1] == after[1]) == (True, False)


def test_other_formats_are_sampled_all_over(tmp_path: Path) -> None:
    folder = tmp_path / "pickled"
    folder.mkdir()
    path = folder / "pytorch_model.bin"
    whole = bytearray(BLOCK * 20)
    path.write_bytes(whole)
    seen = {sampled(path)}
    for at in range(0, len(whole), BLOCK):
        changed = whole.copy()
        changed[at] = 1
        path.write_bytes(changed)
        seen.add(sampled(path))
    assert len(seen) == 21
    assert set(weights_in(folder)) == {"pytorch_model.bin"}
