"""Forward-backward and optimizer time on a GPU, which runs behind the process that gives it work.

A step's three marks are recorded into the GPU's own queue and read at a later step, when it has passed them: nothing
here waits for the GPU.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

TIMED = partial(torch.cuda.Event, enable_timing=True)
Marks = tuple[Any, Any, Any]  # events: forward begins, backward is done, the optimizer is done


class GpuLaps:
    """Marks of this rank's steps on the current stream. `event` makes one that can take the time."""

    def __init__(self, event: Callable[[], Any] = TIMED):
        self._event = event
        self._free: list[Any] = []
        self._open: list[Any] = []
        self._waiting: deque[Marks] = deque()

    def begin(self) -> None:
        self._open = []
        self.mark()

    def mark(self) -> None:
        """Set the next of the step's marks; the third one ends it."""
        event = self._free.pop() if self._free else self._event()
        event.record()
        self._open.append(event)
        if len(self._open) == 3:
            self._waiting.append((self._open[0], self._open[1], self._open[2]))
            self._open = []

    def take(self) -> tuple[int, float, float]:
        """Return how many steps the GPU has finished since the last call, and both parts' seconds in them."""
        steps, forward_backward, optimizer = 0, 0.0, 0.0
        while self._waiting and self._waiting[0][2].query():
            first, second, third = marks = self._waiting.popleft()
            steps += 1
            forward_backward += first.elapsed_time(second) / 1000
            optimizer += second.elapsed_time(third) / 1000
            self._free.extend(marks)
        return steps, forward_backward, optimizer
