"""TRL's SFTTrainer, told what the recipe says and how this house saves."""

from __future__ import annotations

from typing import Any

import torch
from transformers import PrinterCallback

from .data.isolated import Isolated
from .gradient import Clipped
from .journal import Journal
from .precision import keep_sums_exact
from .saving.resumable import Resumable
from .spec.events import Kind
from .watch import laps
from .watch.counted import Counted
from .watch.evaluation import Evaluated
from .watch.watched import Watched


class Sft(Isolated, Watched, Evaluated, Counted, Resumable, Clipped):
    """A watched SFTTrainer that saves through a Saver and shows each loss to a Brake."""

    def __init__(self, *, story: Journal | None, **settings: Any):
        super().__init__(**settings)
        keep_sums_exact(self.accelerator.state.fsdp_plugin)
        self.story = story
        if story is None:
            self.remove_callback(PrinterCallback)  # else the log of every node repeats the first one's figures

    def training_step(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        loss: torch.Tensor = super().training_step(*args, **kwargs)
        self.brake.saw(bool(torch.isfinite(loss)))
        return loss

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        self._phase("saving")
        with self.meter.laps.during(laps.SAVE):
            super()._save_checkpoint(model, trial)
        self._phase("training")

    def _phase(self, name: str) -> None:
        if self.story:
            self.story.emit(Kind.PHASE, self.state.global_step, name=name)
