"""What is advised is a recipe that can run, and trains as many rows a step."""

from __future__ import annotations

import pytest

from training.spec import presets
from training.spec.advice import advise
from training.spec.faults import NOT_FOR_MEMORY, SENTENCES, WORTH_RETRYING, Reason
from training.spec.lint import parse_recipe
from training.spec.recipe import Recipe, merge

BAD = [reason for reason in Reason if not reason.good]


@pytest.mark.parametrize("reason", BAD)
@pytest.mark.parametrize("name", presets.names())
def test_each_change_gives_another_sound_recipe(reason: Reason, name: str) -> None:
    recipe = presets.load(name).recipe
    found = advise(reason, recipe)
    assert len({one.key for one in found}) == len(found)
    for one in found:
        changed = parse_recipe(merge(recipe.model_dump(mode="json"), one.overrides))
        assert (changed != recipe) == bool(one.changes)
    assert bool(found) or reason in UNADVISED


UNADVISED = {Reason.STOPPED_UNSAVED, Reason.PROOF, Reason.CREDENTIALS, Reason.PERMISSION, Reason.DESTINATION,
             Reason.NETWORK}  # fmt: skip


def test_without_gpu_memory_a_step_takes_as_many_rows_in_smaller_pieces() -> None:
    for batch, then in ((8, (4, 6)), (3, (1, 9)), (1, None)):
        recipe = Recipe.model_validate({"optimisation": {"per_device_batch": batch, "accumulation": 3}})
        first = advise(Reason.OUT_OF_GPU_MEMORY, recipe)[0]
        if then is None:
            assert first.key == "offload"
        else:
            assert tuple(first.overrides["optimisation"].values()) == then


def test_restarts_are_advised_only_where_another_try_may_go_well() -> None:
    for reason in BAD:
        advised = {one.key for one in advise(reason, Recipe())}
        assert ("restart" in advised) == (reason in WORTH_RETRYING)
    patient = Recipe.model_validate({"limits": {"restarts": 1}})
    assert "restart" not in {one.key for one in advise(Reason.NODE_LOST, patient)}


def test_memory_is_blamed_only_where_the_node_does_not_say_otherwise() -> None:
    told = {text: [one.key for one in advise(Reason.KILLED_BY_HOST, Recipe(), text)] for text in ("", NOT_FOR_MEMORY)}
    assert "host-memory" in told[""]
    assert told[NOT_FOR_MEMORY] == ["killer", "restart"]
    assert "memory" not in SENTENCES[Reason.KILLED_BY_HOST]
