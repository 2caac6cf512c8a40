"""A rank of `tests.bench.watch`: trains as `python -m training sft`, watched for a block of steps, then not, in turn.

    python -m tests.bench.watched <recipe.json>, by accelerate launch, in a job that has a supervisor

Not watched means: of the callbacks only transformers' own, TRL's own trainer methods, and the supervisor stopped by
a signal. Blocks go on-off-off-on, so that what drifts falls on both alike. The first rank leaves what it saw in
FIGURES beside its events.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections import defaultdict
from pathlib import Path, PurePosixPath
from typing import Any

import psutil
import torch
from transformers import TrainerCallback
from trl import SFTTrainer

from training import assembly, sft
from training.leave import leave
from training.pidfile import PidFile
from training.spec.folder import JobFolder
from training.trainer import Sft

from .watch import BLOCK, FIGURES, WARM_UP


class Supervised:
    """The supervisor of this job: at work while a block is watched, stopped while one is not."""

    def __init__(self) -> None:
        found = PidFile(JobFolder(PurePosixPath(Path.cwd()))).read()
        assert found is not None
        self.process = psutil.Process(found.pid)

    def turn(self, *, on: bool) -> None:
        self.process.send_signal(signal.SIGCONT if on else signal.SIGSTOP)

    def seconds(self) -> float:
        """Return the processor time that it has taken."""
        times = self.process.cpu_times()
        return float(times.user + times.system)


class Alternating(Sft):
    """An Sft that is watched in every other block of steps."""

    def __init__(self, **settings: Any):
        super().__init__(**settings)
        self.warm_up, self.block = (int(os.environ[name]) for name in (WARM_UP, BLOCK))
        self.watched = True
        self.supervised = Supervised() if self.args.process_index == 0 else None
        self.steps: list[tuple[bool, float, float]] = []
        self.spent: dict[str, float] = defaultdict(float)
        self._begun = self._begun_cpu = self._before = 0.0

    def train(self, *args: Any, **kwargs: Any) -> Any:
        self.callbacks = list(self.callback_handler.callbacks)
        for callback in self.callbacks:
            if not is_theirs(callback):
                for event in (name for name in dir(TrainerCallback) if name.startswith("on_")):
                    self._time(callback, event)
        self._time(self.meter, "passed")
        self._time(self.meter._tokens, "add")
        try:
            return super().train(*args, **kwargs)
        finally:
            if self.supervised:
                self.supervised.turn(on=True)
                self._leave_figures()

    def get_batch_samples(self, *args: Any, **kwargs: Any) -> Any:
        self._between_steps()
        if not self.watched:
            return SFTTrainer.get_batch_samples(self, *args, **kwargs)
        return super().get_batch_samples(*args, **kwargs)

    def training_step(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        if not self.watched:
            return SFTTrainer.training_step(self, *args, **kwargs)
        loss: torch.Tensor = super().training_step(*args, **kwargs)
        return loss

    def _between_steps(self) -> None:
        """Book the step before, and turn where a block begins: the first thing that the Trainer does in a step."""
        done = self.state.global_step - self.warm_up
        if done > 0:
            cpu = time.process_time() - self._begun_cpu
            self.steps.append((self.watched, time.perf_counter() - self._begun, cpu))
        if done == 0:
            self.spent.clear()
            self._before = self.supervised.seconds() if self.supervised else 0.0
        if done >= 0 and done % self.block == 0:
            self._turn(on=done // self.block % 4 in (0, 3))
        self._begun, self._begun_cpu = time.perf_counter(), time.process_time()

    def _turn(self, *, on: bool) -> None:
        if on and not self.watched:
            self.meter.on_train_begin(self.args, self.state, self.control)  # what passed unwatched is no step of its
        self.watched = on
        self.callback_handler.callbacks = [c for c in self.callbacks if on or is_theirs(c)]
        if self.supervised:
            self.supervised.turn(on=on)

    def _time(self, owner: object, name: str) -> None:
        """Book the seconds of `owner`'s method under its class and name."""
        method, key = getattr(owner, name), f"{type(owner).__name__}.{name}"

        def timed(*args: Any, **kwargs: Any) -> Any:
            begun = time.perf_counter()
            try:
                return method(*args, **kwargs)
            finally:
                self.spent[key] += time.perf_counter() - begun

        setattr(owner, name, timed)

    def _leave_figures(self) -> None:
        assert self.supervised is not None
        found = {
            "steps": self.steps,
            "spent": self.spent,
            "supervisor_seconds": self.supervised.seconds() - self._before,
        }
        Path(FIGURES).write_text(json.dumps(found))


def is_theirs(callback: TrainerCallback) -> bool:
    return type(callback).__module__.startswith("transformers.")


if __name__ == "__main__":
    assembly.Sft = Alternating
    leave(sft.main(sys.argv[1:]))
