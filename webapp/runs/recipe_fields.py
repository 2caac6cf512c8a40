"""PURE: the recipe's schema as fields of a form: which control each has, and how a typed text becomes a value."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from training.spec.recipe import Recipe, merge

from . import prompt_text

# Chosen beside the recipe on the site, or no choice at all.
NOT_HERE = frozenset({"version", "model.name", "model.revision", "data.train", "data.test"})
LONG = 2000  # characters from which on a text gets a box of several lines
ROOT = "formats"  # where the fields go that are in no section

# A field means something only where another has one of these values, or after `!` any but that; else it is folded away.
ONLY_WHEN: Mapping[str, tuple[str, tuple[str, ...]]] = {
    **{f"method.{name}": ("method.kind", ("lora", "qlora")) for name in
       ("rank", "alpha", "dropout", "target_modules", "modules_to_save", "rank_stabilised")},
    **{f"method.{name}": ("method.kind", ("qlora",)) for name in ("quantisation", "double_quantisation")},
    **{f"fsdp.{name}": ("fsdp.version", ("1",)) for name in
       ("sync_module_states", "backward_prefetch", "forward_prefetch")},
    "fsdp.weights": ("fsdp.version", ("2",)),
    "fsdp.wrap_classes": ("fsdp.wrap_policy", ("TRANSFORMER_BASED_WRAP",)),
    "fsdp.wrap_parameters": ("fsdp.wrap_policy", ("SIZE_BASED_WRAP",)),
    "data.text_field": ("data.format", ("text",)),
    "data.template": ("data.format", ("messages",)),
    "data.packing_strategy": ("data.packing", ("on",)),
    "checkpoints.best_metric": ("checkpoints.keep_best", ("!0",)),
    "export.adapter": ("method.kind", ("lora", "qlora")),
}  # fmt: skip


@dataclass(frozen=True)
class Spec:
    """One recipe field. `kind`: number, choice, choices, switch, text, lines, list or prompts."""

    key: str
    hint: str
    kind: str
    options: tuple[Any, ...] = ()

    @property
    def section(self) -> str:
        return self.key.rpartition(".")[0] or ROOT

    @property
    def choices(self) -> tuple[str, ...]:
        return tuple(str(option) for option in self.options)

    def value(self, typed: str) -> Any:
        """Return what `typed` stands for, unchecked: the recipe says what is wrong with it."""
        if self.kind == "switch":
            return typed == "on"
        if self.kind == "choice":
            return next((option for option in self.options if str(option) == typed), typed)
        if self.kind == "prompts":
            return prompt_text.parse(typed)
        if self.kind in ("list", "choices"):
            return [part for part in re.split(r"[\s,]+", typed) if part]
        return typed.replace("\r\n", "\n") if self.kind == "lines" else typed


@cache
def specs() -> dict[str, Spec]:
    """Return every field that the form shows, by dotted key, in the recipe's order."""
    return {spec.key: spec for spec in _walk(Recipe, "") if spec.key not in NOT_HERE}


@cache
def sections() -> dict[str, str]:
    """Return what each section of the form is about, in one sentence, in the recipe's order."""
    found = {ROOT: "Number formats of the weights and of computing."}
    for name, info in Recipe.model_fields.items():
        if is_section(info.annotation):
            found[name] = (sys.modules[info.annotation.__module__].__doc__ or "").strip().split("\n\n")[0]
    return {name: found[name] for name in dict.fromkeys(spec.section for spec in specs().values())}


def is_section(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _walk(model: type[BaseModel], above: str) -> Iterator[Spec]:
    for name, info in model.model_fields.items():
        if is_section(info.annotation):
            yield from _walk(info.annotation, f"{above}{name}.")  # type: ignore[arg-type]
        else:
            yield _spec(f"{above}{name}", info)


def _spec(key: str, info: FieldInfo) -> Spec:
    annotation = info.annotation
    hint = info.description or ""
    if get_origin(annotation) is Literal:
        return Spec(key, hint, "choice", get_args(annotation))
    if get_origin(annotation) is tuple:
        inner = get_args(annotation)[0]
        if get_origin(inner) is Literal:
            return Spec(key, hint, "choices", get_args(inner))
        return Spec(key, hint, "list" if inner in (str, int, float) or get_origin(inner) is Annotated else "prompts")
    if annotation is bool:
        return Spec(key, hint, "switch")
    if annotation in (int, float):
        return Spec(key, hint, "number")
    lengths = [found for item in info.metadata if (found := getattr(item, "max_length", None))]
    return Spec(key, hint, "lines" if max(lengths, default=0) > LONG else "text")


def shown(value: Any, kind: str = "") -> str:
    """Return a recipe's value as the form holds it."""
    if kind == "prompts":
        return prompt_text.show(value)
    if isinstance(value, bool):
        return "on" if value else ""
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def typed(recipe: dict[str, Any]) -> dict[str, str]:
    """Return every field of `recipe` as the form holds it; what it lacks is the default."""
    whole = merge(Recipe().model_dump(mode="json"), recipe)
    return {key: shown(_dig(whole, key), spec.kind) for key, spec in specs().items()}


def laid_over(base: dict[str, Any], fields: Mapping[str, str]) -> dict[str, Any]:
    """Return `base`, a nested recipe, with the typed `fields` in it; one that is folded away is the default again.

    The recipe refuses what it would not read, and nobody could mend a field that isn't shown.
    """
    usual = Recipe().model_dump(mode="json")
    for key, text in fields.items():
        nested: Any = specs()[key].value(text) if applies(key, fields) else _dig(usual, key)
        for part in reversed(key.split(".")):
            nested = {part: nested}
        base = merge(base, nested)
    return base


def applies(key: str, fields: Mapping[str, str]) -> bool:
    """Tell whether the field means something beside the others."""
    other, values = ONLY_WHEN.get(key, ("", ()))
    if other not in fields:
        return True
    return f"!{fields[other].strip()}" not in values if values[0].startswith("!") else fields[other] in values


def _dig(recipe: Any, key: str) -> Any:
    for part in key.split("."):
        recipe = recipe.get(part, "") if isinstance(recipe, Mapping) else ""
    return recipe
