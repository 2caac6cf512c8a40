"""What would be accepted and then ignored, or is known to fail later, is refused with the way out."""

from __future__ import annotations

from typing import Any

import pytest

from tests.training.launch import recipe
from training.spec.lint import Refused, parse_recipe
from training.spec.recipe import Recipe, merge
from training.spec.sections.method import ADAPTERS

FULL = "while kind is full, which trains every weight; set kind to lora or qlora"
OTHER: dict[str, Any] = {
    "rank": 64, "alpha": 16, "dropout": 0.0, "target_modules": ["q_proj"], "modules_to_save": ["lm_head"],
    "rank_stabilised": True,
}  # fmt: skip
REFUSED: list[tuple[dict[str, Any], str, str]] = [
    *(({"method": {name: value}}, "method", f"{name}: of no use {FULL}") for name, value in OTHER.items()),
    ({"method": {"rank": 64, "alpha": 16}}, "method", f"rank, alpha: of no use {FULL}"),
    ({"method": {"kind": "lora", "quantisation": "fp4"}}, "method", "quantisation belongs to qlora"),
    ({"method": {"kind": "lora", "double_quantisation": False}}, "method", "quantisation belongs to qlora"),
    ({"export": {"adapter": "adapter"}}, "recipe", "export.adapter is of no use while method.kind is full"),
    ({"data": {"format": "text", "template": "x"}}, "data", "template is not read with format text"),
    ({"data": {"text_field": "body"}}, "data", "text_field is not read with format messages"),
    ({"data": {"format": "text", "packing_strategy": "wrapped"}}, "data", "is not read without packing"),
    ({"checkpoints": {"best_metric": "loss"}}, "checkpoints.best_metric", "is not read while keep_best is 0"),
    (
        {"checkpoints": {"keep_every": 4}},
        "checkpoints.keep_every",
        "only those of steps 12, 24, 36, ... would match; set it to 3 or 6",
    ),
    ({"checkpoints": {"keep_best": 1}}, "recipe", "nothing is evaluated; set optimisation.evaluate_every, best to 3"),
    (
        {"fsdp": {"version": 1}, "checkpoints": {"asynchronous": True}},
        "recipe",
        "knows FSDP2's alone; set it to false, or fsdp.version to 2",
    ),
    (
        {"optimisation": {"optimizer": "paged_adamw_32bit"}},
        "recipe",
        "illegal memory accesses in bitsandbytes; set optimisation.optimizer to adamw_torch, or fsdp.version to 1",
    ),
    (
        {"optimisation": {"optimizer": "paged_adamw_8bit"}},
        "recipe",
        "illegal memory accesses in bitsandbytes; set optimisation.optimizer to adamw_torch, or fsdp.version to 1",
    ),
]


def test_every_field_of_an_adapter_is_tried() -> None:
    assert tuple(OTHER) == ADAPTERS


@pytest.mark.parametrize(("asked", "field", "why"), REFUSED)
def test_it_is_refused(asked: dict[str, Any], field: str, why: str) -> None:
    with pytest.raises(Refused, match=why) as refused:
        recipe(**asked)
    assert [problem.field for problem in refused.value.problems] == [field]


def test_defaults_are_nothing_asked_for() -> None:
    """Forms and presets send every field."""
    whole = Recipe().model_dump(mode="json")
    assert parse_recipe(whole) == Recipe()
    lora = parse_recipe(merge(whole, {"method": {"kind": "lora"}, "export": {"adapter": "adapter"}}))
    assert parse_recipe(lora.model_dump(mode="json")) == lora
