"""A model card lists the settings that had a say, and no others."""

from __future__ import annotations

from training.spec.recipe import Recipe
from training.spec.unused import unused


def kept(**sections: dict[str, object]) -> set[str]:
    recipe = Recipe.model_validate(sections).model_dump(mode="json")
    every = {f"{section}.{name}" for section in ("method", "data", "optimisation") for name in recipe[section]}
    return every - unused(recipe)


def test_what_a_run_has_not_read_is_named() -> None:
    assert {name for name in kept() if name.startswith("method.")} == {"method.kind"}
    assert {"optimisation.max_steps", "optimisation.warmup_ratio", "data.template"} < kept()
    lora = kept(method={"kind": "lora"}, optimisation={"epochs": 2.0, "warmup_steps": 3})
    assert {"method.rank", "optimisation.epochs", "optimisation.warmup_steps"} < lora
    assert not {"method.quantisation", "optimisation.max_steps", "optimisation.warmup_ratio"} & lora
    packed = kept(method={"kind": "qlora"}, data={"format": "text", "packing": True})
    assert {"method.quantisation", "data.text_field", "data.packing_strategy"} < packed
