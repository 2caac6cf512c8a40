"""Each way through the whole trainer: the same losses and norms to the last digit, and what it says of itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.training import ranks_harness
from tests.training.attempts import Attempts
from tests.training.launch import curve, of_kind, recipe
from tests.training.loading.ranks import build
from training.spec.events import Event
from training.spec.folder import JobFolder

pytestmark = pytest.mark.ranks
SHORT = {"optimisation": {"max_steps": 3}, "checkpoints": {"every_steps": 50, "at_end": False}}


LORA = {"kind": "lora", "rank": 4, "modules_to_save": ["lm_head"]}
ASKED = {
    **{way: {"precision": "bf16", "fsdp": {"weights": way}} for way in ("slices", "broadcast", "accelerate")},
    **{
        f"lora-{way}": {"precision": "bf16", "fsdp": {"weights": way}, "method": LORA}
        for way in ("slices", "accelerate")
    },
    "pure": {"precision": "bf16", "master_weights": "bf16"},
}


@pytest.fixture(scope="module")
def trained(attempts: Attempts, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], JobFolder]:
    """Return a function that trains on two ranks as asked, once each, and returns the job's folder."""

    untied = tmp_path_factory.mktemp("untied") / "model"
    build(untied, attempts.model, tied=False)

    @cache
    def train(name: str) -> JobFolder:
        model = untied if name.startswith("lora") else attempts.model
        launch = attempts.launch(f"loading-{name}", nodes=1, processes=2, model=model)
        (plan,) = launch.plans(recipe(**SHORT, **ASKED[name]))
        assert ranks_harness.run([plan]) == [0, 0], Path(plan.folder.log).read_text()
        return plan.folder

    return train


def started(folder: JobFolder) -> Event:
    (found,) = of_kind(folder, "started")
    return found


@pytest.mark.parametrize("way", ["slices", "broadcast"])
def test_losses_and_norms_equal_accelerates(trained: Callable[[str], JobFolder], way: str) -> None:
    ours, theirs = trained(way), trained("accelerate")
    assert (started(ours).data["loading"], started(theirs).data["loading"]) == (way, "accelerate")
    assert curve(ours) == curve(theirs)


def test_an_adapter_on_a_frozen_base_equals_accelerates(trained: Callable[[str], JobFolder]) -> None:
    """The base is read, in bf16; the head, trained whole, starts as the base's in fp32; the factors are each rank's."""
    ours, theirs = trained("lora-slices"), trained("lora-accelerate")
    told = started(ours).data
    assert (told["loading"], told["base_dtype"], told["master_dtype"]) == ("slices", "bfloat16", "float32")
    assert curve(ours) == curve(theirs)


def test_fp32_masters_under_bf16_are_read_back(trained: Callable[[str], JobFolder]) -> None:
    told = started(trained("slices")).data
    assert [told[f"{part}_dtype"] for part in ("master", "compute", "reduce")] == ["float32", "bfloat16", "float32"]


def test_bf16_masters_are_read_back_and_learn_something_else(trained: Callable[[str], JobFolder]) -> None:
    told = started(trained("pure")).data
    assert [told[f"{part}_dtype"] for part in ("master", "compute", "reduce")] == ["bfloat16"] * 3
    assert told["loading"] == "slices"
    assert curve(trained("pure")) != curve(trained("slices"))
