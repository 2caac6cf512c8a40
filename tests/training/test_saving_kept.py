"""What stays of many saves, over a real process group of one rank: by the rule, by pins and holds, through kills."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from transformers import TrainerControl, TrainerState

from tests.training import folders
from tests.training.folders import whole
from training.endings import Ended
from training.journal import Journal, tail
from training.ranks import Ranks
from training.saving import checkpoints, removal, shelf
from training.saving.checkpoints import FileFacts, Metric
from training.saving.known import Known
from training.saving.saver import Saver
from training.spec.folder import hold_name
from training.spec.sections.checkpoints import Checkpoints

ROOT = Path(__file__).parents[2]


class Training:
    """Saves small checkpoints with a loss each, and may be started anew where it was killed."""

    def __init__(self, ranks: Ranks, folder: Path, **rule: Any):
        self.ranks, self.folder, self.rule = ranks, folder, Checkpoints(every_steps=2, **rule)
        self.start()

    def start(self) -> None:
        journal = Journal(self.folder / "events.jsonl")
        self.saver = Saver(str(self.folder / "checkpoints"), self.rule, self.ranks, journal)

    @property
    def root(self) -> Path:
        return self.saver.root

    def save(self, step: int, loss: float | None = None, *, at: int | None = None, fails: bool = False) -> None:
        def write(folder: Path, group: object) -> dict[str, FileFacts]:
            folder.mkdir(parents=True)
            (folder / "rng_state_0.pth").write_text(f"at {step}")
            if fails:
                raise OSError(28, "No space left on device")
            return folders.measured(folder, ["rng_state_0.pth"])

        self.saver.enter(step)
        metric = (
            {} if loss is None else {"loss": Metric(value=loss, step=at or step), "eval_loss": Metric(value=9, step=1)}
        )
        self.saver.save(step, write, metric)

    def why(self) -> dict[int, str]:
        return {e.step or 0: e.data["why"] for e in tail(self.saver.journal.path) if e.kind == "checkpoint_deleted"}


def best_by_loss(ranks: Ranks, folder: Path, **rule: Any) -> Training:
    return Training(ranks, folder, **{"keep": 1, "keep_best": 1, "best_metric": "loss", **rule})


def test_the_best_and_the_newest_and_every_kth_stay(ranks: Ranks, tmp_path: Path) -> None:
    training = best_by_loss(ranks, tmp_path, keep_every=6)
    for step, loss in enumerate([0.9, 0.3, 0.5, math.nan, 0.7, 0.8, 0.6], 1):
        training.save(2 * step, loss)
    assert checkpoints.steps(training.root) == [4, 6, 12, 14]
    assert training.why() == {
        2: "older than the newest 1; not among the best 1 by loss (0.9); no multiple of 6",
        8: "older than the newest 1; no loss to go by; no multiple of 6",
        10: "older than the newest 1; not among the best 1 by loss (0.7); no multiple of 6",
    }


def test_a_kill_forgets_no_loss_and_loses_no_good_one(ranks: Ranks, tmp_path: Path) -> None:
    """What a checkpoint is worth stands in its own manifest: whoever comes next judges as the one before would have."""
    training = best_by_loss(ranks, tmp_path)
    training.save(2, 0.3)
    training.save(4, 0.9)
    with pytest.raises(Ended):
        training.save(6, 0.1, fails=True)
    torn = training.root / "checkpoint-6"
    torn.mkdir()
    (torn / "rng_state_0.pth").write_text("a save that was killed")
    training.start()
    assert checkpoints.steps(training.root) == [2, 4, 6]
    training.save(8, 0.5)
    assert checkpoints.steps(training.root) == [2, 8]
    assert training.why()[6] == "torn, and older than the last complete one"
    assert all(not folders.damage(training.root / f"checkpoint-{step}") for step in (2, 8))


def test_keeping_one_never_deletes_the_last_complete_one(ranks: Ranks, tmp_path: Path) -> None:
    """Nor does it for a better one, a torn one, or one whose save fails."""
    training = best_by_loss(ranks, tmp_path)
    training.save(2, 0.1)
    for step in (4, 6):
        training.save(step, 5.0 + step)
        with pytest.raises(Ended):
            training.save(step + 1, 0.01, fails=True)
        assert checkpoints.steps(training.root) == [2, step]
        assert folders.damage(training.root / f"checkpoint-{step}") == []


def test_what_is_pinned_or_held_meanwhile_stays_until_it_is_let_go(ranks: Ranks, tmp_path: Path) -> None:
    training = Training(ranks, tmp_path, keep=1)
    training.save(2)
    removal.pin(training.root / "checkpoint-2")
    training.save(4)
    (training.root / "checkpoint-4" / hold_name(3)).touch()
    training.save(6)
    assert checkpoints.steps(training.root) == [2, 4, 6]
    assert training.why() == {}
    removal.unpin(training.root / "checkpoint-2")
    (training.root / "checkpoint-4" / hold_name(3)).unlink()
    training.save(8)
    assert checkpoints.steps(training.root) == [8]


def test_one_that_a_person_deletes_meanwhile_is_missed_by_nobody(ranks: Ranks, tmp_path: Path) -> None:
    training = best_by_loss(ranks, tmp_path)
    training.save(2, 0.1)
    training.save(4, 0.5)
    removal.delete(training.root / "checkpoint-2")
    training.save(6, 0.7)
    assert checkpoints.steps(training.root) == [4, 6]


def test_a_person_who_deletes_all_the_time_never_gets_what_training_needs(ranks: Ranks, tmp_path: Path) -> None:
    training, over, deleted = Training(ranks, tmp_path, keep=3), threading.Event(), list[str]()

    def person() -> None:
        while not over.is_set():
            folders_there = [training.root / f"checkpoint-{step}" for step in checkpoints.steps(training.root)]
            deleted.extend(shelf.delete(folders_there)[1])

    with ThreadPoolExecutor(1) as pool:
        deleting = pool.submit(person)
        for step in range(2, 52, 2):
            training.save(step)
            assert folders.damage(training.root / f"checkpoint-{step}") == []
        over.set()
        deleting.result()
    assert checkpoints.steps(training.root)[-1] == 50
    assert "checkpoint-50" not in deleted
    assert deleted


def test_the_figures_go_on_from_a_checkpoint_until_they_are_measured_again() -> None:
    before = {"eval_loss": Metric(value=0.5, step=5), "loss": Metric(value=0.9, step=6)}
    known = Known(before)
    known.on_log(None, TrainerState(global_step=7), TrainerControl(), logs={"loss": 0.8, "grad_norm": 1.0})
    known.on_log(None, TrainerState(global_step=8), TrainerControl(), logs={"train_runtime": 3.0})
    assert known.metrics == before | {"loss": Metric(value=0.8, step=7)}
    known.on_log(None, TrainerState(global_step=10), TrainerControl(), logs={"eval_loss": 0.4})
    assert known.metrics["eval_loss"] == Metric(value=0.4, step=10)
    assert before["loss"].value == 0.9


KILLED = """
import os, signal, sys
from pathlib import Path
place, event, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
seen = 0
def at(name, args):
    global seen
    if name == event:
        seen += 1
        if seen == count:
            os.kill(os.getpid(), signal.SIGKILL)
from training.saving.cli import main
sys.addaudithook(at)
main(["delete", str(place)])
"""


@pytest.mark.parametrize(
    ("event", "count"), [("os.rename", 1), ("shutil.rmtree", 1), ("os.remove", 3), ("os.rmdir", 2)]
)
def test_a_delete_that_is_killed_leaves_all_or_nothing_and_ends_when_asked_again(
    tmp_path: Path, event: str, count: int
) -> None:
    for step in (2, 4):
        whole(tmp_path, step)
    command = [sys.executable, "-c", KILLED, str(tmp_path / "checkpoint-2"), event, str(count)]
    done = subprocess.run(command, cwd=ROOT, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == -9
    assert checkpoints.steps(tmp_path) == ([2, 4] if event == "os.rename" else [4])
    if event == "os.rename":
        assert folders.damage(tmp_path / "checkpoint-2") == []
    removal.delete(tmp_path / "checkpoint-2")
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-4"]


def taken(root: Path, step: int) -> Path:
    """Return a whole checkpoint as a delete leaves it that was killed before it looked at what keeps it."""
    folder = whole(root, step)
    return folder.rename(root / f".deleted-{folder.name}-0123abcd")


@pytest.mark.parametrize("mark", [".pin", hold_name(3)])
def test_a_kept_one_that_a_killed_delete_took_gets_its_name_back(tmp_path: Path, mark: str) -> None:
    for step in (2, 4):
        (taken(tmp_path, step) / mark).touch()
    taken(tmp_path, 6)
    assert removal.delete(tmp_path / "checkpoint-2") == 0
    assert checkpoints.steps(tmp_path) == [2, 4]
    assert [folders.damage(tmp_path / f"checkpoint-{step}") for step in (2, 4)] == [[], []]
    assert removal.delete(tmp_path / "checkpoint-6") > 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint-2", "checkpoint-4"]


def test_a_kept_one_whose_name_a_newer_one_has_stays_beside_it(tmp_path: Path) -> None:
    removal.pin(taken(tmp_path, 2))
    whole(tmp_path, 2)
    removal.give_back(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".deleted-checkpoint-2-0123abcd", "checkpoint-2"]


def test_a_torn_save_is_no_more_pinned_when_it_goes(tmp_path: Path) -> None:
    whole(tmp_path, 2)
    removal.pin(tmp_path / "checkpoint-2")
    assert removal.delete(tmp_path / "checkpoint-2", whatever_keeps_it=True) > 0
    assert list(tmp_path.iterdir()) == []
