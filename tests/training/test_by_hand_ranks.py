"""A fine-tune by hand, from the terminal: Ctrl-C saves, `--resume latest` goes on, and the supervisor was there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from transformers import AutoModelForCausalLM

from tests.training.attempts import Attempts, write_rows
from tests.training.launch import ROOT, SMALL, events, of_kind
from tests.training.nodejobs import until
from training.spec.folder import JobFolder, Scratch
from training.spec.recipe import merge

pytestmark = pytest.mark.ranks
LIMIT = 300


@dataclass
class Hand:
    """A person at a terminal, in a folder with a recipe."""

    place: Path
    model: Path

    def write(self, steps: int) -> None:
        asked = {
            "model": {"name": str(self.model)},
            "data": {"train": "rows/train.jsonl", "test": "rows/test.jsonl"},
            "optimisation": {"max_steps": steps},
            "checkpoints": {"every_steps": 1000},
            "export": {"at_end": True},
        }
        (self.place / "recipe.yaml").write_text(yaml.safe_dump(merge(dict(SMALL), asked)))

    def start(self, *words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "training", "sft", "recipe.yaml", "--out", "runs", *words]
        environment = os.environ | {"PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1"}
        return subprocess.Popen(
            command, cwd=self.place, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def job(self, attempt: int) -> JobFolder:
        return Scratch(self.place / "runs").job(1, attempt, 0)  # type: ignore[arg-type]

    def exit(self, attempt: int) -> dict[str, object]:
        body: dict[str, object] = json.loads(Path(self.job(attempt).exit).read_text())
        return body


@pytest.fixture(scope="module")
def hand(attempts: Attempts, tmp_path_factory: pytest.TempPathFactory) -> Hand:
    place = tmp_path_factory.mktemp("hand")
    write_rows(place / "rows")
    return Hand(place, attempts.model)


@pytest.fixture(scope="module")
def interrupted(hand: Hand) -> str:
    """Start, press Ctrl-C after the first step; return what the terminal showed."""
    hand.write(steps=5000)
    process = hand.start()
    try:
        log = Path(hand.job(1).events)
        until(lambda: process.poll() is not None or (log.exists() and of_kind(hand.job(1), "metrics")))
        process.send_signal(signal.SIGINT)
        shown, _ = process.communicate(timeout=LIMIT)
    finally:
        process.kill()
    assert process.returncode == 0, shown
    return shown


def test_ctrl_c_saves(hand: Hand, interrupted: str) -> None:
    assert hand.exit(1)["reason"] == "stopped"
    (saved,) = of_kind(hand.job(1), "checkpoint")
    assert Path(Scratch(hand.place / "runs").checkpoint(1, 1, saved.step or 0)).is_dir()  # type: ignore[arg-type]


def test_the_terminal_shows_the_log_and_the_end(interrupted: str) -> None:
    assert "{'loss': " in interrupted
    assert "asked to stop: the step in hand is finished and saved" in interrupted
    assert interrupted.splitlines()[-1] == "stopped: stopped on request, state saved"


def test_the_node_was_sampled(hand: Hand, interrupted: str) -> None:
    lines = [json.loads(line) for line in Path(hand.job(1).samples).read_text().splitlines()]
    assert {line["kind"] for line in lines} == {"sample", "exit"}


def test_it_goes_on_from_the_latest(hand: Hand, interrupted: str) -> None:
    (saved,) = of_kind(hand.job(1), "checkpoint")
    assert saved.step
    hand.write(steps=saved.step + 2)
    process = hand.start("--resume", "latest")
    shown, _ = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, shown
    assert hand.exit(2)["reason"] == "completed"
    started = next(event for event in events(hand.job(2)) if event.kind == "started")
    assert started.data["resumed_from"] == saved.step
    assert [e.step for e in of_kind(hand.job(2), "metrics")] == [saved.step + 1, saved.step + 2]
    exported = Scratch(hand.place / "runs").export(1, 2)  # type: ignore[arg-type]
    assert AutoModelForCausalLM.from_pretrained(Path(exported.model)).num_parameters() == started.data["parameters"]
