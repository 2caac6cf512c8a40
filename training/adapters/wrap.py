"""Put the recipe's adapter on a model: the base frozen, the adapter the same on every rank."""

from __future__ import annotations

from typing import Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import PreTrainedModel

from ..spec.lint import Problem, Refused
from ..spec.recipe import Recipe
from .config import lora_config
from .dtypes import adapter_dtype, check_one_dtype

BACKBONE = "backbone_for_wrapping"


def adapt(model: PreTrainedModel, recipe: Recipe) -> PeftModel:
    """Return `model` with the recipe's adapter; only the adapter needs gradients. Raises Refused.

    The adapter's first values depend on the seed alone: not on the rank, their number or what ran before.
    """
    adapted = _seeded(model, lora_config(recipe.method, model), recipe.optimisation.seed)
    for parameter in adapted.parameters():
        if parameter.requires_grad:
            parameter.data = parameter.data.to(adapter_dtype(recipe))
    if recipe.fsdp.version == 1:
        check_one_dtype(adapted)
    _name_backbone(adapted)
    return adapted


def _seeded(model: PreTrainedModel, config: LoraConfig, seed: int) -> PeftModel:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            adapted = get_peft_model(model, config)
        except ValueError as error:
            fix = "Leave it empty: every linear layer but the head gets an adapter."
            raise Refused([Problem("method.target_modules", str(error), fix)]) from error
    assert isinstance(adapted, PeftModel)
    return adapted


def _name_backbone(adapted: PeftModel) -> None:
    """Tell accelerate where the final norm is.

    It looks among the children of what `base_model_prefix` names, which through PEFT's wrapper is a level too high;
    an untied head's weight, which the loss reads without calling the head, would then stay sharded in the forward.
    """
    base = adapted.get_base_model()
    backbone: Any = getattr(base, base.base_model_prefix)
    vars(adapted).update({BACKBONE: backbone, "base_model_prefix": BACKBONE})  # no child: it has its place already
