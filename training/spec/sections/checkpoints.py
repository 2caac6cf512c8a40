"""When sharded state is saved, and how much of it stays."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field, ValidationInfo, field_validator

from .base import Section


class Checkpoints(Section):
    every_steps: int = Field(250, ge=1, description="Steps between two sharded checkpoints.")
    every_minutes: float = Field(
        0.0, ge=0, le=10_080, description="Minutes after which one is saved at the latest; 0: by steps alone."
    )
    keep: int = Field(3, ge=1, le=1000, description="Newest complete checkpoints kept per attempt.")
    keep_best: int = Field(
        0, ge=0, le=1000, description="Checkpoints kept besides whose best_metric is the lowest, per attempt; 0: none."
    )
    best_metric: Literal["eval_loss", "loss"] = Field(
        "eval_loss",
        description="What keep_best goes by: the loss of the evaluation at that step, else of the last one before; or"
        " the training loss of the last metric line.",
    )
    keep_every: int = Field(
        0,
        ge=0,
        description="Checkpoints at multiples of this step are kept for good: a multiple of every_steps; 0: none.",
    )
    asynchronous: bool = Field(
        False, description="Train on while a checkpoint is written, from a copy of this rank's shards in host memory."
    )
    at_end: bool = Field(True, description="Save at the last step.")
    timeout_seconds: int = Field(
        1800, ge=10, le=86400, description="Seconds that ranks wait for one that does not enter a save."
    )

    @field_validator("keep_every")
    @classmethod
    def steps_kept_for_good_are_saved(cls, value: int, info: ValidationInfo) -> int:
        every = info.data.get("every_steps", 1)  # absent where it is wrong itself
        if over := value % every:
            first = math.lcm(value, every)
            near = str(every) if value < every else f"{value - over} or {value - over + every}"
            raise ValueError(
                f"it is no multiple of every_steps {every}, so of the checkpoints only those of steps {first},"
                f" {2 * first}, {3 * first}, ... would match; set it to {near}"
            )
        return value

    @field_validator("best_metric")
    @classmethod
    def what_is_given_is_read(cls, value: str, info: ValidationInfo) -> str:
        if not info.data.get("keep_best", 1) and value != cls.model_fields["best_metric"].default:
            raise ValueError("it is not read while keep_best is 0; set keep_best, or leave it out")
        return value

    @property
    def by_evaluation(self) -> bool:
        """Whether evaluations decide what stays."""
        return self.keep_best > 0 and self.best_metric == "eval_loss"
