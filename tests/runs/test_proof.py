"""What a proof says, and what counts as one."""

from __future__ import annotations

from typing import Any

import pytest

from webapp.runs import proof

MIB, GIB = 1 << 20, 1 << 30


def gpu(index: int, before: int | None, now: int | None, others: int = 0) -> dict[str, Any]:
    return {"index": index, "before": before, "now": now, "others": others}


@pytest.mark.parametrize(
    ("gpus", "held", "words"),
    [
        ([], [], "no GPU here"),
        (None, [], "GPU memory not asked for by this release"),
        ([gpu(0, 3 * MIB, 4 * MIB)], [], "GPU memory 4.19 MB as before"),
        ([gpu(0, 3 * MIB, 103 * MIB), gpu(1, 0, 0)], [], "memory of 2 GPUs as before, at most 108 MB"),
        ([gpu(0, 3 * MIB, 104 * MIB)], [0], "GPU 0 holds 109 MB, before 3.15 MB"),
        ([gpu(0, GIB, 0), gpu(7, 0, GIB)], [7], "GPU 7 holds 1.07 GB, before 0 B"),
        ([gpu(0, 0, GIB, others=1)], [], "no GPU memory of it, others use GPU 0"),
        ([gpu(0, None, GIB)], [], "GPU memory 1.07 GB, before the attempt not noted, and no process of it there"),
        ([gpu(0, 0, None)], [], "GPU memory not known to the driver"),
    ],
)
def test_memory(gpus: list[dict[str, Any]] | None, held: list[int], words: str) -> None:
    assert [found["index"] for found in proof.held(gpus)] == held
    made = proof.made({"processes": [], "gpus": gpus}, at=112.34, asked=111.0)
    assert proof.sentence(made) == f"no process left, {words}, 1.3 s after the request"


def test_processes_and_what_could_not_be_asked() -> None:
    assert proof.sentence(proof.made({"processes": [7], "gpus": []}, 1.0, None)) == "1 process is left"
    assert proof.sentence(proof.made({"processes": [7, 8]}, 1.0, None)) == "2 processes are left"
    late = proof.made({"gpus": []}, at=7300.0, asked=0.0)  # of a node that was away
    assert proof.sentence(late) == "no process left, no GPU here, 2 h 1 min after the request"
    problem = proof.made({"gpus": [], "gpu_problem": "NVML: Unknown Error"}, 1.0, None)
    assert proof.sentence(problem) == "no process left, GPU memory not known (NVML: Unknown Error)"
