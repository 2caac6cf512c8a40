"""What real attempts leave on disk: manifests, rotation, shared and private disks, a full one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.training import folders
from tests.training.attempts import Attempts, bring_together
from tests.training.launch import of_kind
from training.saving import checkpoints

pytestmark = pytest.mark.ranks


def test_rotation_keeps_the_newest_on_each_node(attempts: Attempts) -> None:
    ended = attempts.unbroken
    assert [checkpoints.steps(root) for root in ended.checkpoints] == [[4, 6], [4, 6]]
    for rank, folder in enumerate(ended.folders):
        assert [(e.step, e.data["node_rank"]) for e in of_kind(folder, "checkpoint")] == [(n, rank) for n in (2, 4, 6)]
        assert [(e.step, e.data) for e in of_kind(folder, "checkpoint_deleted")] == [
            (2, {"name": "checkpoint-2", "node_rank": rank, "why": "older than the newest 2"})
        ]


def test_a_checkpoint_knows_how_good_it_is(attempts: Attempts) -> None:
    """Every manifest says it, so that any node can judge, and so does the event."""
    head, (root,) = attempts.one_node.head, attempts.one_node.checkpoints
    lines = {e.step: e.data["loss"] for e in of_kind(head, "metrics")}
    evaluations = {e.step: e.data["loss"] for e in of_kind(head, "evaluation")}
    assert set(evaluations) == {3, 6}
    expected = {
        step: {"loss": {"value": lines[step], "step": step}, "eval_loss": {"value": evaluations[step], "step": step}}
        for step in (3, 6)
    }
    assert {e.step: e.data["metrics"] for e in of_kind(head, "checkpoint")} == expected
    for step in (3, 6):
        manifest = checkpoints.read_manifest(root / f"checkpoint-{step}", 0)
        assert manifest
        assert {name: metric.model_dump() for name, metric in manifest.metrics.items()} == expected[step]


def test_a_private_disk_has_its_own_part_only(attempts: Attempts) -> None:
    for rank, root in enumerate(attempts.unbroken.checkpoints):
        found = checkpoints.faults(root / "checkpoint-6")
        assert found == [f"the part of node {1 - rank} is missing"]


def test_parts_brought_together_are_complete(attempts: Attempts, tmp_path: Path) -> None:
    bring_together(attempts.unbroken, 6, tmp_path / "checkpoint-6")
    assert folders.damage(tmp_path / "checkpoint-6") == []


def test_the_event_names_the_files_of_the_manifest(attempts: Attempts) -> None:
    for rank, root in enumerate(attempts.unbroken.checkpoints):
        manifest = checkpoints.read_manifest(root / "checkpoint-6", rank)
        assert manifest is not None
        told = of_kind(attempts.unbroken.folders[rank], "checkpoint")[-1].data
        assert {f["name"]: f["sha256"] for f in told["files"]} == {n: f.sha256 for n, f in manifest.files.items()}
        assert told["bytes"] == manifest.bytes
        assert (told["nodes"], told["world_size"]) == (2, 2)


def test_a_shared_disk_has_one_folder_with_every_part(attempts: Attempts) -> None:
    ended = attempts.resumed
    folder = ended.checkpoints[0] / "checkpoint-6"
    assert folders.damage(folder) == []
    parts = [checkpoints.read_manifest(folder, node) for node in (0, 1)]
    names = [set(part.files) for part in parts if part]
    assert names[0] | names[1] == set(folders.file_names(folder))
    assert not names[0] & names[1]


def test_a_part_missing_is_refused_before_loading(attempts: Attempts) -> None:
    ended = attempts.refused
    assert ended.codes == [1, 1]
    (finished,) = of_kind(ended.head, "finished")
    assert finished.data["reason"] == "checkpoint"
    assert "the part of node 1 is missing" in finished.data["text"]
    assert not of_kind(ended.head, "started")


@pytest.mark.root
def test_a_full_disk_leaves_the_checkpoint_before(attempts: Attempts, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    # one checkpoint of 65 MB fits, a second does not
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=100m", "tmpfs", disk], check=True)
    try:
        ended = attempts.full_disk(disk)
        assert ended.codes == [1]
        (finished,) = of_kind(ended.head, "finished")
        assert finished.data["reason"] == "disk_full"
        (told,) = of_kind(ended.head, "warning")  # before the first step
        assert "full after step 2: at most 3 at once" in told.data["text"]
        assert checkpoints.steps(ended.checkpoints[0]) == [2]
        assert folders.damage(ended.checkpoints[0] / "checkpoint-2") == []
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)
