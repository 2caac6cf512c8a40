"""Say what is wrong with a recipe: the field, the reason, the way out."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from .foreign import answer
from .recipe import Recipe


@dataclass(frozen=True)
class Problem:
    """One thing that keeps a recipe from running. `field` is a dotted path."""

    field: str
    reason: str
    fix: str

    def __str__(self) -> str:
        return f"{self.field}: {self.reason}. {self.fix}"


REFUSED = 3  # exit status of a command that has done what it could, and says on its last line what it has refused


class Refused(ValueError):
    """Bad input, refused before anything was touched."""

    def __init__(self, problems: Sequence[Problem]):
        self.problems = list(problems)
        super().__init__("; ".join(str(p) for p in self.problems))


def parse_recipe(data: dict[str, Any]) -> Recipe:
    """Validate `data`; raise Refused with every problem at once."""
    try:
        return Recipe.model_validate(data)
    except ValidationError as error:
        raise Refused([_problem(e) for e in error.errors(include_url=False)]) from None


def _problem(error: Any) -> Problem:
    location = [str(part) for part in error["loc"]]
    field = ".".join(location) or "recipe"
    if error["type"] == "extra_forbidden":
        known = answer(location[-1])
        return Problem(field, *known) if known else Problem(field, "unknown field", _nearest(location))
    message = str(error["msg"]).removeprefix("Value error, ")
    return Problem(field, f"{message} (got {_shown(error.get('input'))})", _bounds(location))


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:  # Python prints no number of thousands of digits
        text = "a very long number"
    return text if len(text) <= 80 else text[:77] + "..."


def _section(location: Sequence[str]) -> type[BaseModel] | None:
    model: Any = Recipe
    for part in location:
        info = model.model_fields.get(part) if isinstance(model, type) and issubclass(model, BaseModel) else None
        model = info.annotation if info else None
    return model if isinstance(model, type) and issubclass(model, BaseModel) else None


def _nearest(location: Sequence[str]) -> str:
    section = _section(location[:-1])
    names = list(section.model_fields) if section else []
    near = difflib.get_close_matches(location[-1], names, n=1)
    return f"Did you mean {near[0]}?" if near else f"Known here: {', '.join(names)}." if names else "Remove it."


def _bounds(location: Sequence[str]) -> str:
    section = _section(location[:-1]) if location else None
    info = section.model_fields.get(location[-1]) if section else None
    return info.description or "Change the value." if info else "Change the value."


def problems_on(recipe: Recipe, *, accelerator: bool) -> list[Problem]:
    """Return what this recipe asks for that nodes of this kind can't give."""
    if accelerator:
        return []
    found = []
    if recipe.fsdp.version == 1:
        found.append(Problem("fsdp.version", "FSDP1 needs a GPU and these nodes have none", "Set it to 2."))
    if recipe.method.kind == "qlora":
        why = "a 4-bit base needs bitsandbytes on a GPU and these nodes have none"
        found.append(Problem("method.kind", why, "Use lora."))
    if recipe.optimisation.optimizer.startswith("paged_"):
        found.append(
            Problem(
                "optimisation.optimizer", "paged optimizers need a GPU and these nodes have none", "Use adamw_torch."
            )
        )
    if recipe.model.attention == "flash_attention_2":
        found.append(
            Problem("model.attention", "Flash Attention 2 needs a GPU and these nodes have none", "Use auto or sdpa.")
        )
    if recipe.precision == "fp16":
        found.append(Problem("precision", "fp16 needs a GPU and these nodes have none", "Use fp32, or bf16."))
    if recipe.fsdp.cpu_offload:
        found.append(Problem("fsdp.cpu_offload", "there is no GPU to offload from", "Set it to false."))
    return found
