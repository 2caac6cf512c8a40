"""What people type out of habit is refused with its name here, or the reason why it isn't there."""

from __future__ import annotations

import pytest

from training.spec import foreign
from training.spec.lint import Problem, Refused, parse_recipe
from training.spec.reading import read_yaml
from training.spec.recipe import Recipe


def refused(data: dict[str, object]) -> Problem:
    with pytest.raises(Refused) as caught:
        parse_recipe(data)
    (problem,) = caught.value.problems
    return problem


@pytest.mark.parametrize("name", ["save_only_model", "load_best_model_at_end"])
def test_what_sharded_state_can_not_do_is_refused(name: str) -> None:
    problem = refused({"checkpoints": {name: True}})
    assert problem.field == f"checkpoints.{name}"
    assert "SHARDED_STATE_DICT" in problem.reason
    assert "export" in problem.fix


def test_what_keeps_the_best_is_named_by_another_name() -> None:
    assert "checkpoints.keep_best" in refused({"checkpoints": {"load_best_model_at_end": True}}).fix
    assert "checkpoints.best_metric" in refused({"checkpoints": {"greater_is_better": True}}).fix


@pytest.mark.parametrize("name", ["load_in_4bit", "quantization_config", "bnb_4bit_quant_type"])
@pytest.mark.parametrize("section", ["model", "method"])
def test_four_bits_without_an_adapter_can_not_be_said(name: str, section: str) -> None:
    problem = refused({section: {name: True}})
    assert "only an adapter beside it" in problem.reason
    assert "method.kind to qlora" in problem.fix


def test_recomputation_has_one_place() -> None:
    assert "fsdp.activation_checkpointing" in refused({"optimisation": {"gradient_checkpointing": True}}).fix


@pytest.mark.parametrize("name", sorted(foreign.CALLED))
def test_each_name_here_is_a_field(name: str) -> None:
    found: object = Recipe()
    for part in foreign.CALLED[name].partition(":")[0].split("."):
        found = getattr(found, part)
    assert refused({name: 1}).fix == f"Set {foreign.CALLED[name]}."


def test_none_of_them_is_a_name_of_ours_at_the_same_place() -> None:
    assert not set(Recipe.model_fields) & {*foreign.CALLED, *foreign.NOT_HERE}


def test_a_typing_error_still_gets_its_neighbour() -> None:
    assert refused({"optimisation": {"max_step": 3}}).fix == "Did you mean max_steps?"


def test_a_doubled_key_is_refused_with_its_line() -> None:
    with pytest.raises(Refused, match="line 3, column 3: max_steps is there twice"):
        read_yaml("optimisation:\n  max_steps: 3\n  max_steps: 4\n")
    with pytest.raises(Refused, match="precision is there twice"):
        read_yaml('{"precision": "bf16", "precision": "fp32"}')


def test_aliases_are_refused() -> None:
    with pytest.raises(Refused, match="aliases are not read here"):
        read_yaml("a: &a [x, x]\nb: [*a, *a]\n")


@pytest.mark.parametrize("text", ["? [a, b]\n: 1", "? {a: 1}\n: 1", f"a: 1{':59' * 3000}.5"])
def test_what_no_mapping_of_fields_can_hold_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="recipe: "):
        read_yaml(text)


def test_a_number_too_long_to_print_is_refused() -> None:
    assert "a very long number" in refused({"optimisation": {"max_steps": 16**6000}}).reason


def test_a_recipe_reads_back_what_it_writes() -> None:
    recipe = parse_recipe({"optimisation": {"betas": [0.9, 0.95], "learning_rate": 1e-5}, "precision": "fp32"})
    assert parse_recipe(read_yaml(recipe.to_yaml())) == recipe
    assert parse_recipe(read_yaml(recipe.model_dump_json())) == recipe
