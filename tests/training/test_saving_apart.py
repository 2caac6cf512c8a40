"""Saves beside training, on a real process group of one rank: when they count, and who hears of their failure."""

from __future__ import annotations

import errno
import hashlib
import threading
from pathlib import Path

import pytest
import torch
from transformers import TrainerControl, TrainerState

from tests.training import folders
from tests.training.folders import doomed
from training.endings import Ended
from training.journal import Journal, tail
from training.ranks import Ranks
from training.saving import checkpoints
from training.saving.checkpoints import FileFacts
from training.saving.saver import Saver
from training.saving.snapshot import HostCopies, Snapshot
from training.saving.watch import SaveWatch
from training.spec.faults import Reason
from training.spec.sections.checkpoints import Checkpoints

LIMIT = 60


@pytest.fixture
def saver(ranks: Ranks, tmp_path: Path) -> Saver:
    return Saver(
        str(tmp_path / "checkpoints"), Checkpoints(keep=1), ranks, Journal(tmp_path / "events.jsonl"), asynchronous=True
    )


class SlowDisk:
    """Writes one small file when it is let."""

    def __init__(self, error: OSError | None = None):
        self.go, self.error = threading.Event(), error

    def write(self, folder: Path, group: object) -> dict[str, FileFacts]:
        folder.mkdir(parents=True)
        (folder / "rng_state_0.pth").write_text(folder.name)
        assert self.go.wait(LIMIT)
        if self.error:
            raise self.error
        return folders.measured(folder, ["rng_state_0.pth"])


def begun(saver: Saver, step: int, disk: SlowDisk) -> None:
    saver.enter(step)
    saver.save(step, disk.write)


def test_training_goes_on_and_it_counts_when_written(saver: Saver) -> None:
    disk = SlowDisk()
    begun(saver, 2, disk)
    saver.settle()
    assert checkpoints.faults(saver.root / "checkpoint-2") == ["it has no manifest, so its save did not end"]
    disk.go.set()
    saver.settle(wait=True)
    assert folders.damage(saver.root / "checkpoint-2") == []
    assert [(e.kind, e.step) for e in tail(saver.journal.path)] == [("checkpoint", 2)]


def test_a_failure_is_heard_at_a_later_step_and_the_one_before_stays(saver: Saver) -> None:
    good, full = SlowDisk(), SlowDisk(OSError(errno.ENOSPC, "No space left on device"))
    good.go.set()
    begun(saver, 2, good)
    begun(saver, 4, full)
    full.go.set()
    with pytest.raises(Ended, match=r"rank 0 could not save .* MB free") as caught:
        saver.settle(wait=True)
    assert caught.value.reason == Reason.DISK_FULL
    assert checkpoints.steps(saver.root) == [2]
    assert folders.damage(saver.root / "checkpoint-2") == []


def test_one_is_in_flight_at_most_and_the_older_goes_last(saver: Saver) -> None:
    first, second = SlowDisk(), SlowDisk()
    begun(saver, 2, first)
    threading.Timer(0.05, first.go.set).start()
    begun(saver, 4, second)  # waits for the first
    assert checkpoints.faults(saver.root / "checkpoint-2") == []
    assert doomed(saver.root) == []  # the one in flight is none yet
    second.go.set()
    saver.settle(wait=True)
    assert checkpoints.steps(saver.root) == [4]
    kinds = [(e.kind, e.step) for e in tail(saver.journal.path)]
    assert kinds == [("checkpoint", 2), ("checkpoint", 4), ("checkpoint_deleted", 2)]


def test_the_end_of_training_waits_for_it(saver: Saver) -> None:
    disk = SlowDisk()
    with saver:
        begun(saver, 2, disk)
        threading.Timer(0.05, disk.go.set).start()
    assert checkpoints.faults(saver.root / "checkpoint-2") == []


def test_a_failed_training_lets_it_end_and_keeps_its_own_error(saver: Saver) -> None:
    disk = SlowDisk()

    def train() -> None:
        with saver:
            begun(saver, 2, disk)
            threading.Timer(0.05, disk.go.set).start()
            raise ValueError("a bad row")

    with pytest.raises(ValueError, match="a bad row"):
        train()
    assert checkpoints.faults(saver.root / "checkpoint-2") == []


def test_what_is_written_is_what_was_when_the_save_began(saver: Saver) -> None:
    weights = torch.arange(300_000, dtype=torch.float32)
    disk, copies = SlowDisk(), HostCopies()
    for step in (2, 4):  # the second save reuses the copies of the first
        weights += 1
        expected = weights.clone()
        snapshot = copies.of(Snapshot({"model": {"w": weights}}, {"note": b"at %d" % step}))
        saver.enter(step)

        def write(folder: Path, group: object, snapshot: Snapshot = snapshot) -> dict[str, FileFacts]:
            assert disk.go.wait(LIMIT)
            return snapshot.write(folder, group)

        saver.save(step, write)
        weights += 100
        disk.go.set()
        saver.settle(wait=True)
        found = {"w": torch.zeros(300_000)}
        torch.distributed.checkpoint.load(found, checkpoint_id=saver.root / f"checkpoint-{step}" / "model")
        assert torch.equal(found["w"], expected)


def test_hashes_taken_on_the_way_are_those_of_the_files(ranks: Ranks, tmp_path: Path) -> None:
    state = {"large": torch.randn(200_000), "small": torch.tensor(3), "words": ["a", "b"]}
    facts = Snapshot({"model": state}, {"note": b"x"}).write(tmp_path, ranks.group)
    assert set(facts) == {"model/__0_0.distcp", "model/.metadata", "note"} == set(folders.file_names(tmp_path))
    for name, told in facts.items():
        content = (tmp_path / name).read_bytes()
        assert told == FileFacts(size=len(content), sha256=hashlib.sha256(content).hexdigest())


def test_a_large_file_is_read_byte_by_byte_before_it_is_gone_on_from(tmp_path: Path) -> None:
    with open(tmp_path / "shard", "wb") as file:
        file.truncate(checkpoints.SMALL + 1)
    facts = folders.measured(tmp_path, ["shard"])
    checkpoints.write_manifest(tmp_path, checkpoints.Manifest(step=2, node_rank=0, nodes=1, world_size=1, files=facts))
    with open(tmp_path / "shard", "r+b") as file:
        file.seek(1 << 20)
        file.write(b"\x01")
    assert checkpoints.faults(tmp_path) == []  # by its size alone
    assert checkpoints.large_files(tmp_path) == ["shard"]
    assert checkpoints.changed(tmp_path, ["shard"]) == ["shard was changed after its save"]


def test_a_save_is_due_after_minutes_whatever_made_the_last_one(saver: Saver, ranks: Ranks) -> None:
    now = [1000.0]
    watch = SaveWatch(saver, 10, ranks, clock=lambda: now[0])
    state = TrainerState()

    def due_after(seconds: float) -> bool:
        now[0] += seconds
        control = TrainerControl()
        watch.on_step_end(None, state, control)
        if control.should_save:
            watch.on_save(None, state, control)
        return control.should_save

    assert [due_after(s) for s in (599, 1, 300)] == [False, True, False]
    watch.on_save(None, state, TrainerControl())  # by steps
    assert [due_after(s) for s in (599, 1)] == [False, True]


def test_without_minutes_steps_alone_decide(saver: Saver, ranks: Ranks) -> None:
    watch = SaveWatch(saver, 0, ranks, clock=lambda: float("inf"))
    control = TrainerControl()
    watch.on_step_end(None, TrainerState(), control)
    assert not control.should_save
