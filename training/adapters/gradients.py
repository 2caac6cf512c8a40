"""Before the first step that an attempt takes: does every part of the adapter have a gradient? On all ranks alike."""

from __future__ import annotations

from typing import Any

from transformers import TrainerCallback

from ..endings import Ended
from ..ranks import Ranks
from ..spec.faults import Reason
from ..watch.brake import Brake
from .names import clean

SHOWN = 5


class GradientCheck(TrainerCallback):
    """Ends training before its first optimizer step, naming what no rank has a gradient for.

    A part without one stays as it began, in silence: activation checkpointing of the reentrant kind does that
    where a layer's input needs no gradient, and so does a layer that the loss reads past. A step that is left out
    has none for anything, and says nothing: the next one is looked at.
    """

    def __init__(self, ranks: Ranks, brake: Brake):
        self.ranks = ranks
        self.brake = brake
        self.done = False

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.done or self.brake.left_out:
            return
        self.done = True
        missing = set.intersection(*self.ranks.gather(without_gradient(kwargs["model"])))
        if missing:
            raise Ended(Reason.CONFIGURATION, sentence(missing))


def without_gradient(model: Any) -> set[str]:
    """Return the trained parameters of `model` that have no gradient."""
    return {clean(name) for name, p in model.named_parameters() if p.requires_grad and p.grad is None}


def sentence(missing: set[str]) -> str:
    listed = sorted(missing)
    more = f" and {len(listed) - SHOWN} more" if len(listed) > SHOWN else ""
    names = ", ".join(listed[:SHOWN]) + more
    return f"{len(listed)} trained parameters got no gradient in the first step: {names}"
