"""The brake: ends training at the end of a step, on all ranks at the same one."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from ..ranks import Ranks
from ..spec.faults import Reason

HOUR = 3600.0


class Brake(TrainerCallback):
    """Ends training at the end of a step: on request or after so many hours, with a save; for lost weights, without.

    A request is the file `stop` or a TERM; it may reach any one rank, and all act on it at the same step: that one, or
    the next where its optimizer was already at work. So do they when the hours are over by the clock of one of them.
    `limit`: steps in a row with a non-finite loss or gradient. `hours` count from the first step of this attempt; 0:
    without end. `clock`: seconds, of which only differences count.
    """

    def __init__(
        self,
        stop: Path,
        limit: int,
        ranks: Ranks,
        *,
        hours: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.stop = stop
        self.limit = limit
        self.ranks = ranks
        self.reason = Reason.COMPLETED
        self.streak = 0
        self.left_out = False  # this step's gradient was not finite and is gone; the same on all ranks
        self._hours = hours
        self._clock = clock
        self._over = float("inf")
        self._terminated = False
        self._non_finite = False
        self._answer: Callable[[], list[bool]] | None = None

    def listen(self) -> None:
        """Take the first TERM as a request to stop; a second one ends the process at once."""
        signal.signal(signal.SIGTERM, self._on_term)

    def _on_term(self, *_: object) -> None:
        self._terminated = True
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def saw(self, finite: bool) -> None:
        """Take note of this rank's loss of one forward pass, or of the gradient's norm."""
        self._non_finite |= not finite

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self._hours:
            self._over = self._clock() + self._hours * HOUR

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        # Loss and gradient are known: asked now, the answer is there when the optimizer is done, and nobody waits.
        self._answer = self._ask()

    def _ask(self) -> Callable[[], list[bool]]:
        odd, self._non_finite = self._non_finite, False
        return self.ranks.ask([self._terminated or self.stop.exists(), odd, self._clock() >= self._over])

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        answer, self._answer = self._answer or self._ask(), None
        asked, odd, over = answer()
        self.streak = self.streak + 1 if odd else 0
        # weights that are lost now may be sound again at the next step, and then there is something to save
        if (asked or (over and not odd)) and state.global_step < state.max_steps:
            control.should_save = control.should_training_stop = True
            self.reason = Reason.STOPPED if asked else Reason.TIME_LIMIT
        if self.streak:
            control.should_save = False  # these weights are lost: the last good checkpoint must stay the newest
            self._judge(state, control)

    def _judge(self, state: Any, control: Any) -> None:
        if self.streak >= self.limit or state.global_step >= state.max_steps:
            control.should_training_stop = True
            self.reason = Reason.NON_FINITE
        elif self.reason == Reason.STOPPED:
            self.reason = Reason.STOPPED_UNSAVED
