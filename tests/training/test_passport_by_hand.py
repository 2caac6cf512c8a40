"""The passport of an export by hand says what was trained on, not what lies in that file's place today."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from tests.training.folders import whole
from tests.training.launch import recipe
from training.export.fromfiles import compose
from training.journal import Journal
from training.spec.events import Kind
from training.spec.job import ExportJob, TrainJob


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """What training leaves of an attempt: its job, its events, a checkpoint."""
    folder, rows = tmp_path / "7" / "1", tmp_path / "rows.jsonl"
    whole(folder / "checkpoints", 4)
    (folder / "node0").mkdir()
    rows.write_text("{}\n")
    events = str(folder / "node0" / "events.jsonl")
    place = str(folder / "checkpoints")
    made = TrainJob(recipe=recipe(), model="m", train=str(rows), checkpoints=place, events=events, nodes=1, node_rank=0)
    (folder / "node0" / "recipe.json").write_text(made.model_dump_json())
    return folder


def told(run: Path, **data: Any) -> Any:
    Journal(run / "node0" / "events.jsonl").emit(Kind.DATA, rows=9, **data)
    checkpoint = str(run / "checkpoints" / "checkpoint-4")
    return compose(ExportJob(checkpoint=checkpoint, model="m", out="/o", events="/e", dtype="float32")).dataset


def test_the_hash_is_what_training_wrote_down(run: Path) -> None:
    then = hashlib.sha256(b"{}\n").hexdigest()
    (run.parent.parent / "rows.jsonl").write_text('{"other": "rows"}\n')
    assert (told(run, sha256=then).sha256, told(run, sha256=then).name) == (then, "rows.jsonl")


def test_without_one_it_stays_empty(run: Path) -> None:
    """Events of an earlier release."""
    dataset = told(run)
    assert (dataset.sha256, dataset.rows) == ("", 9)
