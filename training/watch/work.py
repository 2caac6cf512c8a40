"""Reads a model's Work off the model, before it is sharded."""

from __future__ import annotations

from typing import Any

from torch import nn

from ..spec.flops import Work

EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts")


def work_of(model: Any, length: int) -> Work | None:
    """Return what a token costs in `model`; None where the formula doesn't hold, so that no wrong figure is told.

    It doesn't for experts, of which a token meets a few only, and for attention through a window shorter than
    `length`, the tokens that a row may have.
    """
    config = model.config.get_text_config()
    window = getattr(config, "sliding_window", None) if getattr(config, "use_sliding_window", True) else None
    if any(getattr(config, name, None) for name in EXPERTS) or (window and window < length):
        return None
    sizes = [(size_of(p), p.requires_grad) for p in in_products(model)]
    heads = config.num_attention_heads
    width = getattr(config, "head_dim", None) or config.hidden_size // heads
    return Work(
        trained=sum(size for size, trains in sizes if trains),
        frozen=sum(size for size, trains in sizes if not trains),
        attention=config.num_hidden_layers * heads * width,
    )


def in_products(model: Any) -> list[nn.Parameter]:
    """Return the parameters that multiply: matrices, without a table that only rows are looked up in.

    An embedding that is tied to the head is the head's matrix, and counts once. What an adapter trains a copy of
    is not used itself.
    """
    tables = (module for module in model.modules() if isinstance(module, nn.Embedding))
    head = model.get_output_embeddings()
    looked_up = {id(p) for table in tables for p in table.parameters()}
    looked_up -= {id(p) for p in (head.parameters() if head else ())}
    named = model.named_parameters()
    return [p for name, p in named if p.dim() > 1 and id(p) not in looked_up and ".original_module." not in name]


def size_of(parameter: nn.Parameter) -> int:
    """Return how many weights `parameter` stands for; in a 4-bit one each byte holds two."""
    return parameter.numel() * (2 * parameter.element_size() if is_packed(parameter) else 1)


def is_packed(parameter: nn.Parameter) -> bool:
    return type(parameter).__name__ == "Params4bit"  # bitsandbytes is not everywhere
