"""Exports with real ranks, FSDP over two nodes with private disks: one beside a training, one at its end.

A stop and a resume with real ranks: tests/e2e/test_journey.py.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.workers.world import Following, World, stored_equals_written
from training.samples import data, model
from webapp.fleet.models import Node
from webapp.runs import actions, expected, series
from webapp.runs.actions import newest_checkpoint
from webapp.runs.models import Export, Run
from workers import advance
from workers.nodejob import advance as nodejob

pytestmark = pytest.mark.ranks


@pytest.fixture
def real(world: World) -> World:
    """The world with the real launcher, a real model and real data."""
    Node.objects.update(python=sys.executable)
    assert model.main(["tiny", str(world.folder / "model")]) == 0
    sample = world.folder / "sample"
    assert data.main(["code-chat", str(sample)]) == 0
    folder = world.version.folder
    for name, rows in (("train", 60), ("test", 8)):
        lines = (sample / f"{name}.jsonl").read_text("utf-8").splitlines(keepends=True)[:rows]
        (folder / f"{name}.jsonl").write_text("".join(lines), "utf-8")
    return world


def losses(run: Run) -> dict[float, Any]:
    found = series.read(run, "loss")
    assert found is not None
    return dict(zip(found.steps, found.values, strict=True))


def test_exports_beside_a_training_and_at_its_end(
    real: World, following: Following, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = {"max_steps": 10, "per_device_batch": 2}
    run = real.run(optimisation=short, checkpoints={"every_steps": 3}, export={"at_end": True})
    real.drive(run, lambda r: newest_checkpoint(r) is not None)
    beside = while_it_trains(real, run, monkeypatch)
    assert set(losses(run)) == {float(step) for step in range(1, 11)}
    assert losses(run)[10.0] < losses(run)[1.0]
    assert real.supervisors() == []
    assert (beside.state, beside.start, beside.retried) == ("ready", 2, 1), f"{beside.reason}: {beside.reason_text}"
    export = Export.objects.exclude(pk=beside.pk).get(checkpoint__attempt__run=run)  # the one that the recipe asked for
    real.drive(run, lambda _: export_ended(export), step=lambda: nodejob.advance("export", export.pk))
    assert export.state == "ready", f"{export.reason}: {export.reason_text}"
    names = {file["name"] for file in export.files}
    foretold = export.foretold
    weights = {file["name"]: file["size"] for file in export.files if file["name"].endswith(".safetensors")}
    assert {file.name: file.size for file in foretold.writing.files} == weights
    assert (export.dtype, foretold.writing.dtype, export.made_dtype) == ("base", "float32", "float32")
    assert foretold.reading.brought > 0, "the shards of the other node"
    assert expected.took(export)
    assert export.expected_seconds
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= names
    folder = Path(export.slot["scratch"]) / "runs" / str(run.pk) / "exports" / str(export.pk) / "model"
    assert json.loads((folder / "config.json").read_text("utf-8"))["architectures"] == ["LlamaForCausalLM"]
    stored_equals_written(run)


def while_it_trains(world: World, run: Run, monkeypatch: pytest.MonkeyPatch) -> Export:
    """Drive `run` to its end, and an export of its checkpoint beside it, which is killed once and goes on."""
    monkeypatch.setattr(actions.begin, "FIRST_DELAY", timedelta(0))
    export, killed = actions.export(run, world.user), []

    def step() -> None:
        advance.advance(run.pk)
        nodejob.advance("export", export.pk)
        killed.extend([] if killed else kill(world, "export"))

    world.drive(run, lambda r: r.has_ended and export_ended(export), step=step)
    assert (run.state, len(killed)) == ("succeeded", 1), f"{run.reason}: {run.reason_text}"
    assert run.attempt.checkpoints.exists(), "it saved meanwhile"
    return export


def kill(world: World, command: str) -> list[int]:
    """End the process of `python -m training COMMAND` on a node as the kernel would; return its id, or nothing."""
    found = [pid for pid in world.supervisors() if f"training\0{command}\0" in Path(f"/proc/{pid}/cmdline").read_text()]
    for pid in found:
        os.kill(pid, signal.SIGKILL)
    return found


def export_ended(export: Export) -> bool:
    export.refresh_from_db()
    return bool(export.has_ended)
