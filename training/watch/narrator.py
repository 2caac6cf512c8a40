"""The story of training, told in events on the first rank."""

from __future__ import annotations

from typing import Any

from transformers import TrainerCallback

from ..journal import Journal
from ..spec.events import Kind, number


class Narrator(TrainerCallback):
    """Writes what the Trainer reports, on the first rank. Steps count from 1; times are seconds."""

    def __init__(self, journal: Journal, facts: dict[str, Any]):
        self.journal = journal
        self.facts = facts

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.journal.emit(
            Kind.STARTED,
            state.global_step,
            total_steps=state.max_steps,
            attention=kwargs["model"].config._attn_implementation,
            master_dtype=master_dtype(kwargs["optimizer"]),
            resumed_from=state.global_step or None,
            **self.facts,
        )
        self.journal.emit(Kind.PHASE, state.global_step, name="training")

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        if "loss" in logs:  # else it is an evaluation, told by its own call, or the summary of the whole
            self.journal.emit(Kind.METRICS, state.global_step, **numbers(logs))

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any = None, **kwargs: Any) -> None:
        found = {name.removeprefix("eval_"): value for name, value in metrics.items()}
        self.journal.emit(Kind.EVALUATION, state.global_step, **numbers(found))


def master_dtype(optimizer: Any) -> str:
    """Read back the number format of the weights that the optimizer steps, e.g. `float32`."""
    found = {str(p.dtype).removeprefix("torch.") for group in optimizer.param_groups for p in group["params"]}
    return ", ".join(sorted(found))


def numbers(values: dict[str, Any]) -> dict[str, float]:
    """Return the numbers among `values`, NaN included."""
    return {name: found for name, value in values.items() if (found := number(value)) is not None}
