"""An SFTTrainer whose time, tokens and memory are measured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from trl import SFTTrainer

from . import laps
from .meter import Meter


class Watched(SFTTrainer):
    """SFTTrainer that shows a Meter where its time goes."""

    def __init__(self, *, meter: Meter, **settings: Any):
        super().__init__(**settings)
        self.meter = meter
        dtype = "bfloat16" if self.args.bf16 else "float16" if self.args.fp16 else str(self.model.dtype)
        meter.know(self.model, dtype=dtype.removeprefix("torch."), length=self.args.max_length)
        # before all others, which are told what it adds to a log
        self.callback_handler.callbacks.insert(0, meter)

    def get_batch_samples(self, epoch_iterator: Iterator[Any], *args: Any, **kwargs: Any) -> Any:
        return super().get_batch_samples(self.meter.batches(epoch_iterator), *args, **kwargs)

    def training_step(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        loss: torch.Tensor = super().training_step(*args, **kwargs)
        self.meter.passed(last=self.accelerator.sync_gradients)
        return loss

    def evaluate(self, *args: Any, **kwargs: Any) -> Any:
        with self.meter.laps.during(laps.EVALUATION):
            return super().evaluate(*args, **kwargs)
