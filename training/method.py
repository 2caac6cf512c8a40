"""What is trained of the loaded model: all of it, or an adapter beside it (recipe.method)."""

from __future__ import annotations

from typing import Any

from transformers import PreTrainedModel, TrainerCallback

from .ranks import Ranks
from .recompute import SameDropout
from .spec.recipe import Recipe
from .watch.brake import Brake


def prepared(model: PreTrainedModel, recipe: Recipe, ranks: Ranks, brake: Brake) -> tuple[Any, list[TrainerCallback]]:
    """Return what is trained and the callbacks that watch over it. Raises Refused."""
    if not recipe.method.adapts:
        return model, [SameDropout()]
    from .adapters.gradients import GradientCheck  # PEFT takes a second to import
    from .adapters.wrap import adapt

    return adapt(model, recipe), [SameDropout(), GradientCheck(ranks, brake)]


def facts(model: Any, recipe: Recipe) -> dict[str, str]:
    """Return what `started` says of the method beside the numbers of parameters; nothing for full fine-tuning."""
    if not recipe.method.adapts:
        return {}
    frozen = {str(p.dtype).removeprefix("torch.") for p in model.parameters() if not p.requires_grad}
    return {"method": recipe.method.kind, "base_dtype": ", ".join(sorted(frozen))}
