"""The brake: ends training at the end of a step, on all ranks at the same one."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from ..ranks import Ranks
from ..spec.faults import Reason


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
