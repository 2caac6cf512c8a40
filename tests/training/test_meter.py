"""What a step costs: its time by part, its tokens, its memory, each from figures that are known."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from transformers import TrainerControl, TrainerState

from training.ranks import Ranks
from training.spec.flops import Work
from training.watch import laps
from training.watch.gpu_laps import GpuLaps
from training.watch.laps import Laps
from training.watch.memory import held
from training.watch.meter import Meter
from training.watch.pulse import Pulse
from training.watch.tokens import Tokens


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_all_time_is_booked_to_one_part_at_a_time() -> None:
    clock = Clock()
    booked = Laps(Pulse("loading", clock), clock)
    clock.now += 1
    booked.turn(laps.FORWARD_BACKWARD)
    clock.now += 2
    with booked.during(laps.SAVE):
        clock.now += 4
    clock.now += 8
    assert booked.take() == {"other": 1, "forward_backward": 10, "save": 4}
    clock.now += 16
    assert booked.take() == {"forward_backward": 16}


def test_each_turn_is_a_beat() -> None:
    clock = Clock()
    pulse = Pulse("loading", clock)
    booked = Laps(pulse, clock)
    clock.now += 5
    assert pulse.last() == ("loading", 5)
    booked.turn(laps.DATA)
    assert pulse.last() == ("data", 0)


class Event:
    """A GPU's event: it has its time when the GPU gets there, which the test decides."""

    made = 0

    def __init__(self) -> None:
        Event.made += 1

    def record(self) -> None:
        self.at: float | None = None

    def query(self) -> bool:
        return self.at is not None

    def elapsed_time(self, later: Event) -> float:
        assert self.at is not None
        assert later.at is not None
        return later.at - self.at


def test_a_gpu_s_time_is_read_when_it_has_got_there() -> None:
    Event.made = 0
    gpu = GpuLaps(Event)
    for _ in range(2):
        gpu.begin()
        gpu.mark()
        gpu.mark()
    assert gpu.take() == (0, 0.0, 0.0)
    first, _ = gpu._waiting
    for event, milliseconds in zip(first, (1000.0, 1750.0, 2000.0), strict=True):
        event.at = milliseconds
    assert gpu.take() == (1, 0.75, 0.25)
    gpu.begin()
    assert Event.made == 6, "events that were read are used again"


def test_padding_is_no_token() -> None:
    tokens = Tokens()
    ids = torch.ones(2, 4, dtype=torch.long)
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])
    tokens.add({"input_ids": ids, "attention_mask": mask, "labels": ids.masked_fill(mask == 0, -100)})
    tokens.add({"input_ids": ids, "attention_mask": mask})
    assert tokens.take() == [12, 2 * (16 + 4), 3 + 1]
    assert tokens.take() == [0, 0, 0]


def test_packed_samples_count_for_themselves() -> None:
    tokens = Tokens()
    tokens.add({"input_ids": torch.ones(1, 7, dtype=torch.long), "position_ids": torch.tensor([[0, 1, 2, 3, 0, 1, 2]])})
    assert tokens.take() == [7, 16 + 9, 0]


def test_memory_of_this_process(tmp_path: Path) -> None:
    status = tmp_path / "status"
    status.write_text("Name:\tpython\nVmHWM:\t    3000 kB\nVmRSS:\t    2000 kB\nThreads:\t4\n")
    assert held(gpu=False, status=status) == {"host_memory": 2_048_000, "host_memory_peak": 3_072_000}
    assert held(gpu=False)["host_memory"] > 1e7


def test_a_line_holds_all_of_it(ranks: Ranks) -> None:
    """Two steps of two passes each, by a clock that moves between the calls of the trainer."""
    clock = Clock()
    pulse = Pulse("loading", clock)
    meter = Meter(ranks, pulse, gpu=False)
    meter.laps = Laps(pulse, clock)
    meter.work, meter.peak = Work(trained=1000, frozen=500, attention=10), 1e6
    state, control = TrainerState(global_step=7), TrainerControl()
    meter.on_train_begin(None, state, control)
    for _ in range(2):
        step(meter, state, clock)
    logs = {"loss": 1.0}
    meter.on_log(None, state, control, logs=logs)
    assert (logs["step_seconds"], logs["data_seconds"], logs["forward_backward_seconds"]) == (10.0, 4.0, 3.0)
    assert (logs["optimizer_seconds"], logs["other_seconds"]) == (2.0, 1.0)
    assert logs["tokens_per_second"] == 2 * 2 * 5 / 20
    assert logs["mfu"] == pytest.approx((8000 * 20 + 120 * 4 * 25) / (20 * 1e6))
    assert "save_seconds" not in logs


def step(meter: Meter, state: TrainerState, clock: Clock) -> None:
    """One step of 10 s: 2 x 2 for the loader, 2 x 1.5 forward and backward, 2 the optimizer, 1 the rest."""
    control = TrainerControl()

    def loader() -> Iterator[dict[str, torch.Tensor]]:
        for _ in range(2):
            clock.now += 2
            yield {"input_ids": torch.ones(1, 5, dtype=torch.long)}

    batches = list(meter.batches(loader()))
    meter.on_step_begin(None, state, control)
    for index in range(len(batches)):
        clock.now += 1.5
        meter.passed(last=index == 1)
    clock.now += 2
    meter.on_optimizer_step(None, state, control)
    clock.now += 1
    state.global_step += 1


def test_an_evaluation_s_log_is_left_alone(ranks: Ranks) -> None:
    logs = {"eval_loss": 1.0}
    Meter(ranks, Pulse("loading"), gpu=False).on_log(None, TrainerState(), TrainerControl(), logs=logs)
    assert logs == {"eval_loss": 1.0}
