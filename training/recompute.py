"""Activation checkpointing that drops the same inputs twice.

accelerate wraps layers for FSDP2 without keeping the random state, so that dropout in the recomputed forward
would draw another mask than the forward it stands for, and gradients would be those of neither.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import CheckpointWrapper
from transformers import TrainerCallback


class SameDropout(TrainerCallback):
    """Makes every checkpointed layer keep the random state, once the model is wrapped."""

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        keep_random_state(kwargs["model"])


def keep_random_state(model: nn.Module) -> int:
    """Do so for every wrapped layer of `model`; return their number."""
    wrapped = [module for module in model.modules() if isinstance(module, CheckpointWrapper)]
    for module in wrapped:
        module.checkpoint_fn = partial(module.checkpoint_fn, preserve_rng_state=True)
    return len(wrapped)
