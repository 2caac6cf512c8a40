"""gpu-check, as far as it goes without a GPU: its table, its refusal, and every check that FSDP2 on CPU can stand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
import yaml

from tests.gpu.bench import Bench, fsdp1_alone
from tests.gpu.checks import checks
from tests.gpu.table import Failed, LeftOut, checked, status
from tests.training import ranks_harness
from tests.training.launch import ROOT, Launch, recipe
from training.spec.job import TrainJob


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
    rows = list(checked(checks(Bench(tmp_path / "bench", gpus=0, run=ranks_harness.run))))
    assert [row.name for row in rows if row.verdict == "ok"] == [
        "FSDP2: trains", "FSDP2: sharded save", "FSDP2: resume", "FSDP2: full export", "bf16", "attention",
    ], "\n".join(map(str, rows))  # fmt: skip
    assert "to the last digit" in rows[2].seen


@pytest.mark.ranks
def test_a_training_that_fails_is_made_once_and_says_why(tmp_path: Path) -> None:
    made = []
    bench = Bench(tmp_path / "bench", gpus=0, run=lambda plans: made.append(plans) or ranks_harness.run(plans))
    (bench.model / "model.safetensors").write_bytes(b"torn")
    rows = list(checked(checks(bench)[:2]))
    assert {row.verdict for row in rows} == {"failed"}
    assert "HeaderTooSmall" in rows[0].seen or "header" in rows[0].seen.lower()
    assert len(made) == 1


def test_fsdp1_on_one_gpu_trains_and_saves_nothing(tmp_path: Path) -> None:
    """What the rank would be given; it takes a GPU to go further."""
    launch = Launch(tmp_path, tmp_path / "model", "rows", nodes=1, accelerator=True)
    plan = fsdp1_alone(launch, recipe(fsdp={"version": 1}))
    job = TrainJob.model_validate_json(plan.files["recipe.json"])
    settings = yaml.safe_load(plan.files["accelerate.yaml"])
    assert (job.recipe.fsdp.version, settings["fsdp_config"]["fsdp_version"]) == (1, 1)
    assert (settings["num_processes"], settings["use_cpu"]) == (1, False)
    assert not job.recipe.checkpoints.at_end
    assert job.recipe.checkpoints.every_steps > job.recipe.optimisation.max_steps


def test_on_one_gpu_what_fsdp1_cannot_save_is_left_out(tmp_path: Path) -> None:
    found = dict(checks(Bench(tmp_path / "bench", gpus=1)))
    for name in ("FSDP1: sharded save", "FSDP1: resume", "FSDP1: full export"):
        with pytest.raises(LeftOut, match="shards nothing"):
            found[name]()
    assert {"FSDP1: trains", "FSDP2: trains", "paged optimizer"} <= found.keys()
