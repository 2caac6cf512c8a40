"""Whether the recipe, the tokenizer and the model go together: refused before any weight is read."""

from __future__ import annotations

import difflib
from typing import Any

import torch
from transformers import PreTrainedTokenizerBase

from ..spec.lint import Problem, Refused
from ..spec.recipe import Recipe


def check_vocabulary(config: Any, tokenizer: PreTrainedTokenizerBase, model: str) -> None:
    """Raise Refused where the tokenizer has entries that the model has no rows for."""
    rows = config.get_text_config().vocab_size
    if len(tokenizer) > rows:
        raise Refused(
            [
                Problem(
                    "model",
                    f"the tokenizer has {len(tokenizer)} entries and the model {rows} rows",
                    f"Resize it once: python -m training resize-embeddings --model {model} --out NEW_FOLDER,"
                    " and train that.",
                )
            ]
        )


def check_wrapping(recipe: Recipe, model: torch.nn.Module) -> None:
    """Raise Refused where the layer classes to wrap are not in the model."""
    if recipe.fsdp.wrap_policy == "SIZE_BASED_WRAP":
        return
    there = sorted({type(module).__name__ for module in model.modules()})
    wanted = recipe.fsdp.wrap_classes or tuple(getattr(model, "_no_split_modules", None) or ())
    if not wanted:
        raise Refused(
            [Problem("fsdp.wrap_classes", "the model does not name its layers", f"Name one of {', '.join(there)}.")]
        )
    if recipe.fsdp.wrap_classes and (missing := [name for name in wanted if name not in there]):
        near = difflib.get_close_matches(missing[0], there, n=1)
        fix = f"Did you mean {near[0]}?" if near else "Leave it empty: it is derived from the model."
        raise Refused([Problem("fsdp.wrap_classes", f"the model has no layer class {missing[0]}", fix)])
