"""What one rank decides for itself: where the model is, whether it fits, how it is loaded. A real group of one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from huggingface_hub import constants

from tests.training.attempts import Attempts
from tests.training.launch import recipe
from tests.training.loading.test_checks import job
from training.loading.choice import Choice, Way, choose
from training.loading.fits import check_fits
from training.loading.model import load_model
from training.loading.place import place_model
from training.loading.tokenizer import load_tokenizer
from training.ranks import Ranks
from training.spec.lint import Refused


def test_a_folder_is_where_it_is(attempts: Attempts, ranks: Ranks) -> None:
    assert place_model(job(attempts.model), ranks).model == str(attempts.model)


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path, ranks: Ranks) -> None:
    with pytest.raises(Refused, match=r"there is no folder .*gone on the first node\. Name a folder"):
        place_model(job(tmp_path / "gone"), ranks)


@pytest.mark.parametrize("name", ["nobody/has-this", "no/such/name"])
def test_a_hub_id_that_can_not_be_had_is_refused_with_the_reason(
    name: str, ranks: Ranks, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(Refused, match=rf"{name} is no folder and can't be had from the hub \(.+\)"):
        place_model(job(Path(name)), ranks)


def test_what_does_not_fit_is_refused_with_what_is_needed_and_there(ranks: Ranks) -> None:
    """10^12 parameters in fp32: no test runs where they fit."""
    huge = torch.nn.Linear(10**6, 10**6, device="meta")
    with pytest.raises(Refused, match=r"loading by slices needs 16000\.\d GB on node .+, node has .+ GB free of"):
        check_fits(huge, recipe(), Way.SLICES, ranks)
    check_fits(torch.nn.Linear(10, 10), recipe(), Way.SLICES, ranks)


def test_the_way_is_the_recipes_or_the_leanest(attempts: Attempts, ranks: Ranks) -> None:
    for asked, way in (("auto", "slices"), ("slices", "slices"), ("broadcast", "broadcast")):
        assert choose(job(attempts.model, fsdp={"weights": asked}), ranks) == Choice(Way(way))
    assert choose(job(attempts.model, fsdp={"version": 1}), ranks) == Choice(Way.ACCELERATE)


def test_a_way_that_can_not_be_is_refused_with_the_way_out(attempts: Attempts, ranks: Ranks, tmp_path: Path) -> None:
    for path in Path(attempts.model).iterdir():
        if path.suffix != ".safetensors":
            shutil.copy(path, tmp_path)
    assert choose(job(tmp_path), ranks).way == Way.ACCELERATE
    with pytest.raises(Refused, match=r"fsdp.weights: .* has neither .*Choose accelerate, or auto"):
        choose(job(tmp_path, fsdp={"weights": "slices"}), ranks)


def test_a_broken_index_is_refused_whatever_the_way(attempts: Attempts, ranks: Ranks, tmp_path: Path) -> None:
    (tmp_path / "model.safetensors.index.json").write_text("{")
    with pytest.raises(Refused, match="it can't be read"):
        choose(job(tmp_path), ranks)


def test_accelerates_way_refuses_missing_tensors_too(attempts: Attempts, ranks: Ranks, tmp_path: Path) -> None:
    """transformers would make them up with a warning, and train on noise."""
    from safetensors.torch import load_file, save_file

    folder = tmp_path / "model"
    shutil.copytree(attempts.model, folder)
    weights = load_file(folder / "model.safetensors")
    del weights["model.norm.weight"]
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    asked = job(folder, fsdp={"weights": "accelerate"})
    with pytest.raises(Refused, match=r"1 tensors of the model are not in its files: model.norm.weight"):
        load_model(asked, load_tokenizer(asked), ranks)
