"""The loss of an evaluation: over all its tokens at once, so the same whatever the batch and however many ranks."""

from __future__ import annotations

from typing import Any

import datasets
import torch
from torch.utils.data import DataLoader
from trl import SFTTrainer

from .tokens import IGNORED, trained_tokens


class Evaluated(SFTTrainer):
    """SFTTrainer that adds up negative log-likelihoods and trained tokens over all ranks, and divides once.

    The Trainer's own is a mean of its batches' means: few tokens in a batch count as much as many.
    """

    def __init__(self, **settings: Any):
        super().__init__(**settings)
        self._sums = torch.zeros(2, dtype=torch.float64)

    def get_eval_dataloader(self, eval_dataset: Any = None) -> DataLoader[Any]:
        rows = self.eval_dataset if eval_dataset is None else eval_dataset
        found: DataLoader[Any] = super().get_eval_dataloader(
            filled(rows, self.args.eval_batch_size * self.args.world_size)
        )
        return found

    def evaluation_loop(self, *args: Any, metric_key_prefix: str = "eval", **kwargs: Any) -> Any:
        self._sums = torch.zeros(2, dtype=torch.float64, device=self.args.device)
        output = super().evaluation_loop(*args, metric_key_prefix=metric_key_prefix, **kwargs)
        loss, tokens = self.accelerator.reduce(self._sums, "sum").tolist()
        output.metrics[f"{metric_key_prefix}_loss"] = loss / tokens
        return output

    def prediction_step(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        loss, *others = super().prediction_step(model, inputs, *args, **kwargs)
        tokens = trained_tokens(inputs["labels"]).to(self._sums)
        self._sums += torch.stack([loss.to(self._sums) * tokens, tokens])  # `loss` is this batch's mean
        return loss, *others


def filled(rows: datasets.Dataset, size: int) -> datasets.Dataset:
    """Return `rows` with as many more at the end as make it a multiple of `size`, in which no token is trained.

    Each rank has whole batches then; accelerate would repeat rows, which would count twice.
    """
    if not (missing := -len(rows) % size):
        return rows
    blank = {"input_ids": rows[0]["input_ids"][:2], "labels": [IGNORED] * 2, "rows": [], "seq_lengths": [2]}
    more = {name: [blank[name]] * missing for name in rows.column_names}
    return datasets.concatenate_datasets([rows, datasets.Dataset.from_dict(more, features=rows.features)])
