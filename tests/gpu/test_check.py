"""gpu-check, as far as it goes without a GPU: its table, its refusal, and every check that FSDP2 on CPU can stand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.gpu.bench import Bench
from tests.gpu.checks import checks
from tests.gpu.table import Failed, LeftOut, checked, status
from tests.training import ranks_harness
from tests.training.launch import ROOT


def holds() -> str:
    return "seen"


def fails() -> str:
    raise Failed("off by one")


def breaks() -> str:
    raise KeyError("loss")


def lacks() -> str:
    raise LeftOut("no bitsandbytes")


def test_each_check_has_its_verdict_and_none_hides_another() -> None:
    rows = list(checked([("a", holds), ("b", breaks), ("c", fails), ("d", lacks)]))
    assert [(row.name, row.verdict, row.seen) for row in rows] == [
        ("a", "ok", "seen"),
        ("b", "failed", "KeyError: 'loss'"),
        ("c", "failed", "off by one"),
        ("d", "left out", "no bitsandbytes"),
    ]


@pytest.mark.parametrize(
    ("found", "wanted"), [([holds], 0), ([holds, lacks], 0), ([holds, fails], 1), ([breaks], 1), ([lacks], 1), ([], 1)]
)
def test_the_status_tells_a_failure_and_nothing_checked(found: list, wanted: int) -> None:
    assert status(list(checked((check.__name__, check) for check in found))) == wanted


def test_without_a_gpu_it_says_so() -> None:
    assert not torch.cuda.is_available(), "where there is a GPU, make gpu-check is the test"
    done = subprocess.run([sys.executable, "-m", "tests.gpu.check"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("gpu-check: ")
    assert "GPU" in done.stderr


@pytest.mark.ranks
def test_every_check_of_fsdp2_holds_on_cpu(tmp_path: Path) -> None:
    rows = list(checked(checks(Bench(tmp_path / "bench", accelerator=False, run=ranks_harness.run))))
    assert [row.name for row in rows if row.verdict == "ok"] == [
        "FSDP2: trains", "FSDP2: sharded save", "FSDP2: resume", "FSDP2: full export", "bf16", "attention",
    ], "\n".join(map(str, rows))  # fmt: skip
    assert "to the last digit" in rows[2].seen


@pytest.mark.ranks
def test_a_training_that_fails_is_made_once_and_says_why(tmp_path: Path) -> None:
    made = []
    bench = Bench(
        tmp_path / "bench", accelerator=False, run=lambda plans: made.append(plans) or ranks_harness.run(plans)
    )
    (bench.model / "model.safetensors").write_bytes(b"torn")
    rows = list(checked(checks(bench)[:2]))
    assert {row.verdict for row in rows} == {"failed"}
    assert "HeaderTooSmall" in rows[0].seen or "header" in rows[0].seen.lower()
    assert len(made) == 1
