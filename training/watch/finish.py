"""The finishing line: where a run ends, which with `epochs` only the loaded data tells."""

from __future__ import annotations

from typing import Any

from transformers import TrainerCallback

from ..spec.lint import Problem, Refused
from ..spec.recipe import Recipe


class FinishLine(TrainerCallback):
    """Refuses a start that lies behind the end, on all ranks alike; leaves the last save out where the recipe does."""

    def __init__(self, recipe: Recipe):
        self.recipe = recipe

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        how, last = self.recipe.optimisation, state.max_steps
        field = "optimisation.epochs" if how.epochs else "optimisation.max_steps"
        if state.global_step >= last:
            why = f"the checkpoint is at step {state.global_step} and the run ends at step {last}"
            raise Refused([Problem(field, why, "Take more, or another checkpoint.")])
        if how.warmup_steps >= last:
            why = f"it leaves nothing of the run's {last} steps"
            raise Refused([Problem("optimisation.warmup_steps", why, "Take fewer.")])

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        due = state.global_step % self.recipe.checkpoints.every_steps == 0
        if state.global_step >= state.max_steps and not due and not self.recipe.checkpoints.at_end:
            control.should_save = False
