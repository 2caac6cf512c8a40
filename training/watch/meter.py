"""The meter: what training costs, as figures of each metrics line. It waits for nothing but what a log waits for.

A callback of every rank, the first of all: what it adds to a log, the others are told. All figures are of the steps
since the last log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from transformers import TrainerCallback

from ..ranks import Ranks
from ..spec import chips
from ..spec.flops import Work
from . import laps, memory
from .gpu_laps import GpuLaps
from .laps import Laps
from .pulse import Pulse
from .tokens import Tokens
from .work import work_of

ALWAYS = (laps.DATA, laps.FORWARD_BACKWARD, laps.OPTIMIZER)


class Meter(TrainerCallback):
    """Measures one rank. `gpu`: it trains on one. Make it on every rank at once."""

    def __init__(self, ranks: Ranks, pulse: Pulse, *, gpu: bool):
        self.laps = Laps(pulse)
        self.chip = torch.cuda.get_device_name() if gpu else ""
        self.peak: float | None = None
        self.work: Work | None = None
        self._ranks = ranks
        self._pulse = pulse
        self._gpu = GpuLaps() if gpu else None
        self._tokens = Tokens()
        self._logged_step = 0

    def know(self, model: Any, *, dtype: str, length: int) -> None:
        """Learn what a step is: `model` not yet sharded, `dtype` that it computes in, tokens that a row may have."""
        self.work = work_of(model, length)
        self.peak = chips.peak(self.chip, dtype)

    def facts(self) -> dict[str, Any]:
        """Return which chip this is and its peak in 16-bit FLOP/s, where known; nothing without a GPU."""
        known = {"chip": self.chip, "chip_flops": chips.peak(self.chip, "float16")} if self.chip else {}
        return {name: value for name, value in known.items() if value is not None}

    def batches(self, loader: Iterable[Any]) -> Iterator[Any]:
        """Yield what `loader` does; the time until it does is booked to data."""
        source = iter(loader)
        while True:
            with self.laps.during(laps.DATA):
                batch = next(source, None)
            if batch is None:
                return
            self._tokens.add(batch)
            yield batch

    def passed(self, *, last: bool) -> None:
        """Take note that a forward and backward pass is through, the step's last one or not."""
        self.laps.turn(laps.OPTIMIZER if last else laps.FORWARD_BACKWARD)
        if last and self._gpu:
            self._gpu.mark()

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._logged_step = self._pulse.step = state.global_step
        self.laps.turn(laps.OTHER)
        self.laps.take()

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._pulse.step = state.global_step + 1
        self.laps.turn(laps.FORWARD_BACKWARD)
        if self._gpu:
            self._gpu.begin()

    def on_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.laps.turn(laps.OTHER)
        if self._gpu:
            self._gpu.mark()

    def on_prediction_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._pulse.beat(laps.EVALUATION)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._pulse.beat("closing")

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        if "loss" in logs:  # on all ranks alike; else it is an evaluation or the summary of the whole
            logs.update(self._figures(state.global_step - self._logged_step))
            self._logged_step = state.global_step

    def _figures(self, steps: int) -> dict[str, float]:
        parts = self.laps.take()
        seconds = sum(parts.values())
        held = memory.held(gpu=self._gpu is not None)
        rows = self._ranks.table([*self._tokens.take(), *held.values()])
        tokens, squares, trained = (sum(row[column] for row in rows) for column in range(3))
        most = (max(row[column] for row in rows) for column in range(3, len(rows[0])))
        return {
            "step_seconds": seconds / steps,
            **{f"{part}_seconds": value / steps for part, value in self._split(parts, seconds, steps).items()},
            "tokens_per_second": tokens / seconds,
            "trained_tokens_per_second": trained / seconds,
            **self._utilisation(tokens, squares, seconds),
            **dict(zip(held, most, strict=True)),
        }

    def _split(self, parts: dict[str, float], seconds: float, steps: int) -> dict[str, float]:
        """Return the seconds of each part. On a GPU its own time counts, not that of handing work over."""
        found = dict.fromkeys(ALWAYS, 0.0) | {part: value for part, value in parts.items() if part != laps.OTHER}
        if self._gpu:
            done, forward_backward, optimizer = self._gpu.take()
            if done:
                found[laps.FORWARD_BACKWARD] = forward_backward * steps / done
                found[laps.OPTIMIZER] = optimizer * steps / done
        return found | {laps.OTHER: max(0.0, seconds - sum(found.values()))}

    def _utilisation(self, tokens: float, squares: float, seconds: float) -> dict[str, float]:
        """Return the share of the chips' peak that went into the model's own FLOPs, where both are known."""
        if self.work is None or self.peak is None:
            return {}
        return {"mfu": self.work.flops(tokens, squares) / (seconds * self.peak * self._ranks.world_size)}
