"""The export of what training itself saved: accelerate's names, our manifests, from one node and from two."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.training.attempts import Attempts, bring_together
from training.export import cli
from training.spec.events import Event, parse
from training.spec.job import ExportJob

pytestmark = pytest.mark.ranks


def export(model: Path, checkpoint: Path, folder: Path) -> tuple[ExportJob, list[Event]]:
    folder.mkdir(exist_ok=True)
    job = ExportJob(
        checkpoint=str(checkpoint),
        model=str(model),
        dtype="float32",
        out=str(folder / "model"),
        events=str(folder / "events.jsonl"),
    )
    cli.run(job)
    return job, [parse(line) for line in Path(job.events).read_bytes().splitlines()]


def weights(job: ExportJob) -> dict[str, torch.Tensor]:
    return load_file(Path(job.out) / "model.safetensors")


def test_two_nodes_and_one_give_the_same_model(attempts: Attempts, tmp_path: Path) -> None:
    """Two nodes of one rank train as one node of two, so both exports must be the same, bit by bit."""
    bring_together(attempts.unbroken, 6, tmp_path / "checkpoint-6")
    two, told = export(attempts.model, tmp_path / "checkpoint-6", tmp_path / "two")
    assert told[-1].data["reason"] == "completed", told[-1].data
    one, told = export(attempts.model, attempts.one_node.checkpoints[0] / "checkpoint-6", tmp_path / "one")
    assert told[-1].data["reason"] == "completed", told[-1].data
    ours, base = weights(two), load_file(attempts.model / "model.safetensors")
    assert ours.keys() == weights(one).keys() == base.keys()
    assert all(torch.equal(tensor, ours[name]) for name, tensor in weights(one).items())
    assert not any(torch.equal(tensor, base[name]) for name, tensor in ours.items()), "training changed all"


def test_the_part_of_one_node_alone_is_refused(attempts: Attempts, tmp_path: Path) -> None:
    _, told = export(attempts.model, attempts.unbroken.checkpoints[0] / "checkpoint-6", tmp_path / "part")
    assert told[-1].data["reason"] == "data"
    assert "manifest-1.json: is missing" in told[-1].data["text"]
