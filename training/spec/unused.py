"""Which settings of a recipe had no say in a run: what belongs to a choice that was not made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .sections.method import ADAPTERS


def unused(recipe: Mapping[str, Any]) -> set[str]:
    """Return the dotted names in `recipe`, as it was written down, that nothing has read."""
    return {*_method(recipe.get("method") or {}), *_data(recipe.get("data") or {}), *_steps(recipe)}


def _method(section: Mapping[str, Any]) -> Iterator[str]:
    kind = section.get("kind", "full")
    if kind == "full":
        yield from (f"method.{name}" for name in ADAPTERS)
    if kind != "qlora":
        yield from ("method.quantisation", "method.double_quantisation")


def _data(section: Mapping[str, Any]) -> Iterator[str]:
    if section.get("format") != "text":
        yield "data.text_field"
    if section.get("format") != "messages":
        yield "data.template"
    if not section.get("packing"):
        yield "data.packing_strategy"


def _steps(recipe: Mapping[str, Any]) -> Iterator[str]:
    """Of two that say the same in two ways, one counts."""
    section = recipe.get("optimisation") or {}
    yield "optimisation.max_steps" if section.get("epochs") else "optimisation.epochs"
    yield "optimisation.warmup_ratio" if section.get("warmup_steps") else "optimisation.warmup_steps"
