"""How many tokens a rank has had, counted where the batch lies: a GPU is asked for the sum only when it is told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

IGNORED = -100  # the label of a token that is not trained


class Tokens:
    """Sums since the last take(): tokens, squares of the samples' lengths, tokens that count in the loss."""

    def __init__(self) -> None:
        self._sums: torch.Tensor | None = None

    def add(self, batch: Mapping[str, Any]) -> None:
        found = count(batch)
        self._sums = found if self._sums is None else self._sums.add_(found)

    def take(self) -> list[float]:
        """Return the three sums and begin anew. Waits for the GPU."""
        sums, self._sums = self._sums, None
        return [0.0, 0.0, 0.0] if sums is None else [float(value) for value in sums.tolist()]


def count(batch: Mapping[str, Any]) -> torch.Tensor:
    """Return tokens, squares and trained tokens of `batch` as three int64 on its device, padding left out.

    In a sample of n tokens position p stands for 2 p + 1, which together is n squared: so packed samples, whose
    positions start at 0 each, count for themselves. Without positions each row is one sample.
    """
    ids = batch["input_ids"]
    mask = batch.get("attention_mask")
    real = mask.long() if mask is not None and mask.dim() == 2 else torch.ones_like(ids, dtype=torch.long)
    positions = batch.get("position_ids")
    squares = real.sum(-1).square().sum() if positions is None else ((2 * positions + 1) * real).sum()
    labels = batch.get("labels")
    return torch.stack([real.sum(), squares, ids.new_zeros(()) if labels is None else trained_tokens(labels)])


def trained_tokens(labels: torch.Tensor) -> torch.Tensor:
    """Return how many tokens of (rows, length) count in the loss: with a label, and with one before to foretell it."""
    return (labels[..., 1:] != IGNORED).sum()
