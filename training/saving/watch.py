"""When a save is due by the clock, and how a save in flight went: asked at the end of each step, on all ranks alike."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from transformers import TrainerCallback

from ..ranks import Ranks
from .saver import Saver


class SaveWatch(TrainerCallback):
    """Comes before the brake, which takes back a save of weights that are no numbers."""

    def __init__(self, saver: Saver, every_minutes: float, ranks: Ranks, clock: Callable[[], float] = time.monotonic):
        self.saver = saver
        self.seconds = every_minutes * 60
        self.ranks = ranks
        self.clock = clock
        self._last = clock()

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._last = self.clock()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.saver.settle()
        if self.seconds and self._due():
            control.should_save = True

    def _due(self) -> bool:
        """Ask the first rank's clock, for all."""
        late = self.ranks.is_main and self.clock() - self._last >= self.seconds
        return self.ranks.any([late])[0]

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._last = self.clock()
