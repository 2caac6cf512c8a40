"""What happens beside a step: the story told in events, and the brake that ends training early."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from .journal import Journal
from .ranks import Ranks
from .spec.events import Kind, number
from .spec.faults import Reason


class Narrator(TrainerCallback):
    """Writes what the Trainer reports, on the first rank. Steps count from 1; times are seconds."""

    def __init__(self, journal: Journal, facts: dict[str, int]):
        self.journal = journal
        self.facts = facts
        self._busy = 0.0
        self._begun = 0.0
        self._logged_step = 0
        self._logged_tokens = 0.0

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._logged_step = state.global_step
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

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._begun = time.monotonic()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._busy += time.monotonic() - self._begun

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        if "loss" in logs:  # else it is an evaluation, told by its own call, or the summary of the whole
            self.journal.emit(Kind.METRICS, state.global_step, **numbers(logs), **self._speed(state, logs))

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any = None, **kwargs: Any) -> None:
        found = {name.removeprefix("eval_"): value for name, value in metrics.items()}
        self.journal.emit(Kind.EVALUATION, state.global_step, **numbers(found))

    def _speed(self, state: Any, logs: dict[str, Any]) -> dict[str, float]:
        steps, tokens = state.global_step - self._logged_step, logs.get("num_tokens", 0.0) - self._logged_tokens
        busy, self._busy = self._busy, 0.0
        self._logged_step, self._logged_tokens = state.global_step, logs.get("num_tokens", 0.0)
        return {"step_seconds": busy / max(steps, 1), "tokens_per_second": tokens / busy if busy else 0.0}


def master_dtype(optimizer: Any) -> str:
    """Read back the number format of the weights that the optimizer steps, e.g. `float32`."""
    found = {str(p.dtype).removeprefix("torch.") for group in optimizer.param_groups for p in group["params"]}
    return ", ".join(sorted(found))


def numbers(values: dict[str, Any]) -> dict[str, float]:
    """Return the numbers among `values`, NaN included."""
    return {name: found for name, value in values.items() if (found := number(value)) is not None}


class Brake(TrainerCallback):
    """Ends training at the end of a step: on request, with a save, or when the loss stays non-finite, without.

    A request is the file `stop` or a TERM; it may reach any one rank, and all act on it at the same step.
    """

    def __init__(self, stop: Path, limit: int, ranks: Ranks):
        self.stop = stop
        self.limit = limit
        self.ranks = ranks
        self.reason = Reason.COMPLETED
        self.streak = 0
        self._terminated = False
        self._non_finite = False

    def listen(self) -> None:
        """Take the first TERM as a request to stop; a second one ends the process at once."""
        signal.signal(signal.SIGTERM, self._on_term)

    def _on_term(self, *_: object) -> None:
        self._terminated = True
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def saw_loss(self, finite: bool) -> None:
        """Take note of this rank's loss of one forward pass."""
        self._non_finite |= not finite

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        asked, odd = self.ranks.any([self._terminated or self.stop.exists(), self._non_finite])
        self._non_finite = False
        self.streak = self.streak + 1 if odd else 0
        if asked and state.global_step < state.max_steps:
            control.should_save = control.should_training_stop = True
            self.reason = Reason.STOPPED
        if self.streak:
            control.should_save = False  # these weights are lost: the last good checkpoint must stay the newest
            self._judge(state, control)

    def _judge(self, state: Any, control: Any) -> None:
        if self.streak >= self.limit or state.global_step >= state.max_steps:
            control.should_training_stop = True
            self.reason = Reason.NON_FINITE
        elif self.reason == Reason.STOPPED:
            self.reason = Reason.STOPPED_UNSAVED
