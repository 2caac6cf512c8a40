"""What NVML says, through the real pynvml; each figure is asked for by itself."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pynvml
import pytest

from training import began, status
from training.nvml import Gpus
from training.spec import throttle
from training.spec.events import GPU_SAMPLED

from .nodejobs import NodeJob
from .nvml_driver import Card, Driver, installed


def taken(*cards: Card, without: tuple[str, ...] = ()) -> list[dict[str, object]]:
    with installed(Driver(list(cards), without)):
        return Gpus().take()


def test_every_figure_has_its_unit() -> None:
    (one, two) = taken(Card(), Card(used=70 << 30, load=0))
    assert one == {
        "index": 0, "used": 3 << 20, "total": 80 << 30, "load": 0.97, "temperature": 61, "power": 412.0,
        "clock_sm": 1980, "clock_memory": 2619, "ecc_uncorrected": 0, "ecc_corrected": 5, "throttle": 4,
    }  # fmt: skip
    assert one.keys() == {"index", *GPU_SAMPLED}
    assert throttle.words(one["throttle"]) == ["power cap"]
    assert (two["index"], two["used"], two["load"]) == (1, 70 << 30, 0.0)
    assert (pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED) == (0, 1)


def test_what_a_card_does_not_know_is_none_and_the_rest_is_there() -> None:
    (slice_of_one,) = taken(Card(load=None, milliwatts=None, ecc={}, throttle=None))
    unknown = {name for name, value in slice_of_one.items() if value is None}
    assert unknown == {"load", "power", "ecc_uncorrected", "ecc_corrected", "throttle"}


def test_an_older_driver_has_another_name_for_the_clocks_and_none_for_ecc() -> None:
    (card,) = taken(Card(), without=("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetTotalEccErrors"))
    assert (card["throttle"], card["ecc_corrected"], card["used"]) == (4, None, 3 << 20)


def test_no_driver_is_no_gpu_and_no_problem() -> None:
    assert (Gpus().take(), Gpus().problem) == ([], "")


def test_a_driver_that_refuses_is_a_problem() -> None:
    with installed(Driver([Card()], without=("nvmlDeviceGetCount_v2",))):
        gpus = Gpus()
    assert gpus.take() == []
    assert "Function Not Found" in gpus.problem


@pytest.mark.parametrize("pids", [[], [1, 4_000_000]])
def test_a_status_compares_each_gpu_with_what_it_held_before(tmp_path: Path, pids: list[int]) -> None:
    job = NodeJob(tmp_path).put("")
    with installed(Driver([Card(), Card()])):
        began.write(job.folder, os.getpid(), began.gpu_memory())
    Path(job.folder.exit).write_text(json.dumps({"reason": "stopped"}))
    with installed(Driver([Card(used=9 << 30, pids=pids), Card()])):
        found = status.status(job.folder)
    assert found["gpus"] == [
        {"index": 0, "before": 3 << 20, "now": 9 << 30, "others": len(pids)},
        {"index": 1, "before": 3 << 20, "now": 3 << 20, "others": 0},
    ]
