"""A run whose numbers stop being numbers half way: told as it is, ended, its last good checkpoint whole."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from tests.training import folders, ranks_harness
from tests.training.attempts import ADAPTER, Attempts, turns, write_rows
from tests.training.launch import Launch, curve, of_kind, recipe
from training.saving import checkpoints
from training.spec.events import number
from training.spec.folder import JobFolder
from training.spec.recipe import Recipe

pytestmark = pytest.mark.ranks

STEEP, LOST = "Ж", "Ω"  # letters that stand in no other row
ROWS = 4  # of a step: two ranks, two rows each
SMALLEST = 1e-38  # of fp32, nearly: 1 / sqrt(x) ** 3 is beyond its largest


def mended() -> Recipe:
    how = {"max_steps": 8}
    return recipe(optimisation=how, checkpoints={"every_steps": 1, "keep": 3}, limits={"non_finite_steps": 2})


def spoilt_model(source: Path, folder: Path) -> Path:
    """Make a model that knows two letters badly: on one its loss is finite and its gradient not, on one neither is.

    A token that is all zeros passes a norm without epsilon as zeros, and its gradient is infinity times zero.
    """
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    shutil.copytree(source, folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    config = AutoConfig.from_pretrained(folder, tie_word_embeddings=False, rms_norm_eps=SMALLEST)
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for letter, value in ((STEEP, 0.0), (LOST, math.nan)):
            model.get_input_embeddings().weight[tokenizer(letter, add_special_tokens=False)["input_ids"][-1]] = value
    model.save_pretrained(folder)
    return folder


def spoil_rows(folder: Path) -> None:
    """Write the usual rows, with a steep letter in the second step and lost ones from the fifth on."""
    _spoil(folder, {2: STEEP, 5: LOST, 6: LOST})


def spoil_first(folder: Path) -> None:
    _spoil(folder, {1: LOST})


def _spoil(folder: Path, letters: dict[int, str]) -> None:
    write_rows(folder)
    train = folder / "train.jsonl"
    lines = train.read_text().splitlines()
    order = torch.randperm(len(lines), generator=torch.Generator().manual_seed(42)).tolist()
    for step, letter in letters.items():
        row = order[ROWS * (step - 1)]
        lines[row] = json.dumps({"messages": [{"role": "user", "content": letter}, *turns("train", row)[1:]]})
    train.write_text("\n".join(lines) + "\n")


@dataclass
class Spoilt:
    launch: Launch
    folder: JobFolder
    codes: list[int]

    @property
    def checkpoints(self) -> Path:
        return self.launch.scratch(0) / "runs/1/1/checkpoints"


@pytest.fixture(scope="module")
def spoilt(attempts: Attempts, tmp_path_factory: pytest.TempPathFactory) -> Spoilt:
    model = spoilt_model(attempts.model, tmp_path_factory.mktemp("spoilt") / "model")
    launch = attempts.launch("spoilt", nodes=1, processes=2, model=model, rows=spoil_rows)
    plans = launch.plans(mended())
    return Spoilt(launch, plans[0].folder, ranks_harness.run(plans))


def test_each_step_is_told_as_it_was(spoilt: Spoilt) -> None:
    metrics = of_kind(spoilt.folder, "metrics")
    losses, norms = ([number(e.data[name]) or 0.0 for e in metrics] for name in ("loss", "grad_norm"))
    assert [math.isfinite(loss) for loss in losses] == [True, True, True, True, False, False]
    assert [math.isfinite(norm) for norm in norms] == [True, False, True, True, False, False]


def test_it_ends_after_so_many_steps_in_a_row(spoilt: Spoilt) -> None:
    assert spoilt.codes == [1, 1], Path(spoilt.folder.log).read_text()
    (finished,) = of_kind(spoilt.folder, "finished")
    assert (finished.step, finished.data["reason"]) == (6, "non_finite")


def test_a_gradient_that_is_none_moves_nothing(spoilt: Spoilt) -> None:
    """The loss of the third step, on weights that the second did not touch, is near the first's."""
    losses = [float(loss) for loss, *_ in list(curve(spoilt.folder).values())[:4]]
    assert losses[3] < losses[0]
    assert all(map(math.isfinite, losses))


def test_the_last_good_checkpoints_are_kept(spoilt: Spoilt) -> None:
    """No step whose numbers were none was saved."""
    assert checkpoints.steps(spoilt.checkpoints) == [1, 3, 4]
    assert folders.damage(spoilt.checkpoints / "checkpoint-4") == []


def test_it_goes_on_from_there_once_the_rows_are_mended(spoilt: Spoilt) -> None:
    write_rows(spoilt.launch.scratch(0) / "datasets" / "rows")
    plans = spoilt.launch.plans(mended(), attempt=2, resume=(1, 4))
    assert ranks_harness.run(plans) == [0, 0], Path(plans[0].folder.log).read_text()
    found = curve(plans[0].folder)
    assert list(found) == [5, 6, 7, 8]
    assert all(math.isfinite(float(value)) for values in found.values() for value in values)
    (resumed,) = of_kind(plans[0].folder, "resumed")
    assert resumed.data["changed"] == ["data"]
    assert any("was made with other tokens than these" in w.data["text"] for w in of_kind(plans[0].folder, "warning"))


def test_an_adapter_s_first_step_may_be_left_out(attempts: Attempts, spoilt: Spoilt) -> None:
    """No part of it has a gradient then, which is not the recipe's fault."""
    launch = attempts.launch("spoilt-adapter", nodes=1, processes=2, model=spoilt.launch.model, rows=spoil_first)
    plans = launch.plans(recipe(optimisation={"max_steps": 3}, limits={"non_finite_steps": 2}, method=ADAPTER))
    assert ranks_harness.run(plans) == [0, 0], Path(plans[0].folder.log).read_text()
    losses = [number(e.data["loss"]) or 0.0 for e in of_kind(plans[0].folder, "metrics")]
    assert [math.isfinite(loss) for loss in losses] == [False, True, True]
