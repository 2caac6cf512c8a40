"""Checkpoint folders as histories leave them, without training."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from tests.training import folders
from tests.training.folders import FILES, doomed, part, whole
from training.saving import checkpoints, removal
from training.saving.checkpoints import Metric
from training.spec.folder import PIN, hold_name
from training.spec.retention import Seen


def test_a_whole_one_has_no_faults(tmp_path: Path) -> None:
    assert folders.damage(whole(tmp_path, 3)) == []


def test_without_a_manifest_it_is_torn(tmp_path: Path) -> None:
    folder = part(tmp_path, 3, 0, manifest=False)
    assert checkpoints.faults(folder) == ["it has no manifest, so its save did not end"]


def test_a_half_written_manifest_is_none(tmp_path: Path) -> None:
    folder = part(tmp_path, 3, 0, nodes=1)
    place = folder / "manifest-0.json"
    place.write_text(place.read_text()[:-40])
    assert checkpoints.faults(folder) == ["it has no manifest, so its save did not end"]


def test_a_missing_part_is_named(tmp_path: Path) -> None:
    assert checkpoints.faults(part(tmp_path, 3, 1)) == ["the part of node 0 is missing"]


def test_parts_of_two_saves_do_not_mix(tmp_path: Path) -> None:
    part(tmp_path, 3, 0, save="one")
    assert checkpoints.faults(part(tmp_path, 3, 1, save="two")) == ["the part of node 1 is from another save"]


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        (lambda path: path.unlink(), "is missing"),
        (lambda path: path.write_text("short"), "has 5 bytes in place of"),
        (lambda path: path.write_text("X" * path.stat().st_size), "was changed after its save"),
    ],
)
@pytest.mark.parametrize("name", FILES[0])
def test_a_damaged_file_is_named(tmp_path: Path, damage: object, fault: str, name: str) -> None:
    folder = whole(tmp_path, 3)
    assert callable(damage)
    damage(folder / name)
    (found,) = checkpoints.faults(folder)
    assert found.startswith(name)
    assert fault in found


def test_names_tell_whose_a_file_is() -> None:
    assert folders.shard_rank("optimizer_0/__12_0.distcp") == 12
    assert folders.shard_rank("rng_state_3.pth") == 3
    assert folders.shard_rank("optimizer_0/.metadata") is None


@pytest.mark.parametrize(
    ("complete", "torn", "keep", "deleted"),
    [
        ([], [], 1, []),
        ([], [2, 4], 1, []),  # nothing complete: nothing goes
        ([2], [4], 1, []),  # the torn one is newer and may be one being written
        ([4], [2], 1, [2]),
        ([2, 4, 6], [], 1, [2, 4]),
        ([2, 4, 6], [], 2, [2]),
        ([2, 4, 6], [3, 8], 2, [2, 3]),
        ([2, 10], [], 9, []),
    ],
)
def test_rotation(tmp_path: Path, complete: list[int], torn: list[int], keep: int, deleted: list[int]) -> None:
    for step in complete:
        part(tmp_path, step, 0)
    for step in torn:
        part(tmp_path, step, 0, manifest=False)
    assert doomed(tmp_path, keep=keep) == deleted


def test_what_an_export_holds_stays_until_it_has_ended(tmp_path: Path) -> None:
    for step in (2, 4, 6):
        part(tmp_path, step, 0)
    hold = tmp_path / "checkpoint-2" / hold_name(7)
    names = folders.file_names(hold.parent)
    hold.touch()
    assert folders.file_names(hold.parent) == names
    assert doomed(tmp_path) == [4]
    hold.unlink()
    assert doomed(tmp_path) == [2, 4]


def test_nodes_judge_by_what_all_of_them_see(tmp_path: Path) -> None:
    """A part torn, pinned or held on one node counts on all, and a metric is the same on all."""
    measured = {"loss": Metric(value=0.5, step=2)}
    nodes = [tmp_path / "0", tmp_path / "1"]
    for node, root in enumerate(nodes):
        for step in (2, 4, 6, 8):
            part(root, step, node, metrics=measured if step == 2 else {})
    (nodes[1] / "checkpoint-4" / hold_name(7)).touch()
    (nodes[0] / "checkpoint-6" / PIN).touch()
    (nodes[1] / "checkpoint-8" / "manifest-1.json").unlink()
    one, other = (checkpoints.seen(root, node, "loss") for node, root in enumerate(nodes))
    assert checkpoints.agreed([one, other]) == checkpoints.agreed([other, one])
    assert checkpoints.agreed([one, other]) == [
        Seen(2, metric=0.5, measured_at=2), Seen(4, held=(7,)), Seen(6, pinned=True), Seen(8, complete=False),
    ]  # fmt: skip


def test_a_metric_that_is_no_number_comes_back_as_it_was(tmp_path: Path) -> None:
    part(tmp_path, 2, 0, metrics={"loss": Metric(value=float("nan"), step=2)})
    manifest = checkpoints.read_manifest(tmp_path / "checkpoint-2", 0)
    assert manifest
    assert math.isnan(manifest.metrics["loss"].value)


def test_a_manifest_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    place = part(tmp_path, 2, 0) / "manifest-0.json"
    old = json.loads(place.read_text())
    del old["metrics"]
    place.write_text(json.dumps(old))
    (seen,) = checkpoints.seen(tmp_path, 0, "loss")
    assert seen == Seen(2)


def test_a_deleted_one_is_gone_and_a_half_deleted_one_does_not_count(tmp_path: Path) -> None:
    whole(tmp_path, 2)
    whole(tmp_path, 4)
    removal.delete(tmp_path / "checkpoint-2")
    removal.delete(tmp_path / "checkpoint-2")
    (tmp_path / ".deleted-checkpoint-3").mkdir()
    assert [path.name for path in tmp_path.glob("checkpoint-*")] == ["checkpoint-4"]
    assert checkpoints.steps(tmp_path) == [4]
