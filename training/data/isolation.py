"""Samples packed into one row must not see each other: tried on the model that trains, before its first step.

Whether they do depends on the model's code and its attention: most make of the positions, which start anew with
each sample, a mask in blocks; some ignore them. Two rows are shown to it that differ in their first sample alone,
and what it says of the second must be the same. Measured on small random models: exactly the same for Llama,
GPT-2, Falcon and Gemma 3 in fp32 and bf16, sdpa and eager; for Mamba and Bloom, which leak, the second sample's
logits move by 30% and 0.2% of the first one's own.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch

from ..spec.lint import Problem, Refused

LENGTH = 24  # tokens of each of the two samples
LIMIT = 1e-3  # of the first sample's own change: above what routing to other experts may round, below what leaks


def check_isolation(
    model: torch.nn.Module, collate: Callable[[list[dict[str, Any]]], dict[str, Any]], config: Any, device: Any
) -> None:
    """Raise Refused where a sample sees its neighbour. All ranks must call, with the model as it trains.

    `collate`: the collator that training uses. Neither weights nor random numbers are touched.
    """
    if (seen := leak(model, collate, config.get_text_config().vocab_size, device)) > LIMIT:
        attention = getattr(config, "_attn_implementation", None) or "its attention"
        why = f"samples packed into one row see each other in {config.model_type} with {attention} (by {seen:.2g})"
        raise Refused([Problem("data.packing", why, "Set it to false, or choose another model.attention.")])


def leak(
    model: torch.nn.Module, collate: Callable[[list[dict[str, Any]]], dict[str, Any]], vocabulary: int, device: Any
) -> float:
    """Return by how much the second sample's logits move with the first sample, as a share of the first's own."""
    draw = random.Random(0)  # noqa: S311  not a secret; apart from training's own numbers
    first, other, second = ([draw.randrange(vocabulary) for _ in range(LENGTH)] for _ in range(3))
    trains = model.training
    model.eval()
    try:
        with torch.no_grad():
            moved = (
                _logits(model, collate, [first, second], device) - _logits(model, collate, [other, second], device)
            ).abs()
    finally:
        model.train(trains)
    own, seen = float(moved[:LENGTH].mean()), float(moved[LENGTH:].mean())
    return seen / own if own else 0.0


def _logits(model: torch.nn.Module, collate: Any, samples: list[list[int]], device: Any) -> torch.Tensor:
    ids = [token for sample in samples for token in sample]
    batch = collate([{"input_ids": ids, "labels": ids, "seq_lengths": [len(sample) for sample in samples]}])
    batch.pop("labels")
    there = {name: value.to(device) if isinstance(value, torch.Tensor) else value for name, value in batch.items()}
    logits: torch.Tensor = model(**there, use_cache=False).logits[0].float()
    return logits
