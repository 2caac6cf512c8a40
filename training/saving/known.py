"""The figures by which checkpoints are compared, as last measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from transformers import TrainerCallback

from ..spec.sections.checkpoints import Checkpoints
from .checkpoints import Metric

NAMES = get_args(Checkpoints.model_fields["best_metric"].annotation)


class Known(TrainerCallback):
    """Takes each figure from the Trainer's own log, which comes before a save of the same step.

    Begins with what the checkpoint knew that is gone on from: a save before the next evaluation is judged as it would
    have been without the break.
    """

    def __init__(self, before: Mapping[str, Metric]):
        self.metrics = dict(before)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        for name in NAMES:
            if name in (logs or {}):
                self.metrics[name] = Metric(value=float(logs[name]), step=state.global_step)
