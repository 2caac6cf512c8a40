"""Saver and Brake over a real process group of one rank: what they do when a save fails or a stop is asked for."""

from __future__ import annotations

import errno
import os
import signal
from pathlib import Path

import pytest
from transformers import TrainerControl, TrainerState

from tests.training import folders
from training.endings import Ended
from training.journal import Journal, tail
from training.ranks import Ranks
from training.saving import checkpoints
from training.saving.checkpoints import FileFacts
from training.saving.saver import Saver
from training.spec.faults import Reason
from training.spec.sections.checkpoints import Checkpoints
from training.watch.brake import Brake


@pytest.fixture
def saver(ranks: Ranks, tmp_path: Path) -> Saver:
    return Saver(str(tmp_path / "checkpoints"), Checkpoints(keep=1), ranks, Journal(tmp_path / "events.jsonl"))


def writing(saver: Saver, step: int, error: OSError | None = None) -> None:
    """Save something small at `step`; in its middle, fail with `error`."""

    def write(folder: Path, group: object) -> dict[str, FileFacts]:
        folder.mkdir(parents=True)
        (folder / "rng_state_0.pth").write_text(f"at {step}")
        if error:
            raise error
        return folders.measured(folder, ["rng_state_0.pth"])

    saver.enter(step)
    saver.save(step, write)


def test_a_save_is_complete_and_told(saver: Saver) -> None:
    writing(saver, 2)
    assert folders.damage(saver.root / "checkpoint-2") == []
    assert [(e.kind, e.step) for e in tail(saver.journal.path)] == [("checkpoint", 2)]


def test_a_failed_save_leaves_the_one_before(saver: Saver) -> None:
    writing(saver, 2)
    with pytest.raises(Ended, match=r"could not save into .* MB free") as caught:
        writing(saver, 4, OSError(errno.ENOSPC, "No space left on device"))
    assert caught.value.reason == Reason.DISK_FULL
    assert [path.name for path in saver.root.iterdir()] == ["checkpoint-2"]
    assert folders.damage(saver.root / "checkpoint-2") == []


def test_a_torn_one_of_the_same_step_is_not_mixed_in(saver: Saver) -> None:
    torn = saver.root / "checkpoint-2"
    torn.mkdir(parents=True)
    (torn / "rng_state_7.pth").write_text("old")
    writing(saver, 2)
    assert folders.file_names(torn) == ["rng_state_0.pth"]


def test_keep_one_deletes_only_after_the_next_is_complete(saver: Saver) -> None:
    for step in (2, 4):
        writing(saver, step)
    assert checkpoints.steps(saver.root) == [4]
    kinds = [(e.kind, e.step) for e in tail(saver.journal.path)]
    assert kinds == [("checkpoint", 2), ("checkpoint", 4), ("checkpoint_deleted", 2)]


def stepped(brake: Brake, step: int, *losses_finite: bool, max_steps: int = 10) -> TrainerControl:
    """Take one step whose forward passes had such losses, on which a save is due."""
    control = TrainerControl(should_save=True)
    for finite in losses_finite:
        brake.saw(finite)
    brake.on_step_end(None, TrainerState(global_step=step, max_steps=max_steps), control)
    return control


def test_nothing_asked_nothing_done(ranks: Ranks, tmp_path: Path) -> None:
    brake = Brake(tmp_path / "stop", 2, ranks)
    control = stepped(brake, 1, True)
    assert (control.should_save, control.should_training_stop, brake.reason) == (True, False, Reason.COMPLETED)


def test_the_stop_file_saves_and_stops(ranks: Ranks, tmp_path: Path) -> None:
    brake = Brake(tmp_path / "stop", 2, ranks)
    brake.stop.touch()
    control = stepped(brake, 1, True)
    assert (control.should_save, control.should_training_stop, brake.reason) == (True, True, Reason.STOPPED)


def test_a_request_while_the_optimizer_works_is_for_the_next_step(ranks: Ranks, tmp_path: Path) -> None:
    brake = Brake(tmp_path / "stop", 2, ranks)
    brake.on_pre_optimizer_step(None, TrainerState(), TrainerControl())
    brake.stop.touch()
    assert not stepped(brake, 1).should_training_stop
    assert stepped(brake, 2).should_training_stop


def test_a_stop_at_the_last_step_is_a_completed_run(ranks: Ranks, tmp_path: Path) -> None:
    brake = Brake(tmp_path / "stop", 2, ranks)
    brake.stop.touch()
    stepped(brake, 10, True)
    assert brake.reason == Reason.COMPLETED


def test_a_term_is_a_request_and_a_second_one_is_not_caught(ranks: Ranks, tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    brake = Brake(tmp_path / "stop", 2, ranks)
    brake.listen()
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
        assert stepped(brake, 1, True).should_training_stop
        assert brake.reason == Reason.STOPPED
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_second_term_ends_the_process_at_once(ranks: Ranks, tmp_path: Path) -> None:
    brake = Brake(tmp_path / "stop", 2, ranks)
    child = os.fork()
    if not child:
        brake.listen()
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)
    assert os.WTERMSIG(status) == signal.SIGTERM


def test_a_non_finite_loss_is_never_saved_and_ends_after_the_limit(ranks: Ranks, tmp_path: Path) -> None:
    brake = Brake(tmp_path / "stop", 2, ranks)
    first, fine, second, third = (
        stepped(brake, step, *losses) for step, losses in enumerate([(True, False), (True,), (False,), (False,)], 1)
    )
    assert [c.should_save for c in (first, fine, second, third)] == [False, True, False, False]
    assert [c.should_training_stop for c in (first, fine, second, third)] == [False, False, False, True]
    assert brake.reason == Reason.NON_FINITE


def test_a_stop_at_a_non_finite_step_is_unsaved(ranks: Ranks, tmp_path: Path) -> None:
    brake = Brake(tmp_path / "stop", 3, ranks)
    brake.stop.touch()
    control = stepped(brake, 1, False)
    assert (control.should_save, control.should_training_stop, brake.reason) == (False, True, Reason.STOPPED_UNSAVED)


def limited(ranks: Ranks, tmp_path: Path, seconds: list[float]) -> Brake:
    """A brake of half an hour that began at 100 s; `seconds`: what its clock says at each step."""
    times = iter([100.0, *seconds])
    brake = Brake(tmp_path / "stop", 3, ranks, hours=0.5, clock=lambda: next(times))
    brake.on_train_begin(None, TrainerState(), TrainerControl())
    return brake


def test_after_its_hours_it_saves_and_stops(ranks: Ranks, tmp_path: Path) -> None:
    brake = limited(ranks, tmp_path, [1899.0, 1900.0])
    early, late = stepped(brake, 1, True), stepped(brake, 2, True)
    assert not early.should_training_stop
    assert (late.should_save, late.should_training_stop, brake.reason) == (True, True, Reason.TIME_LIMIT)


def test_over_at_the_last_step_it_is_completed(ranks: Ranks, tmp_path: Path) -> None:
    brake = limited(ranks, tmp_path, [5000.0])
    stepped(brake, 10, True)
    assert brake.reason == Reason.COMPLETED


def test_over_at_a_non_finite_step_it_goes_on_to_one_that_can_be_saved(ranks: Ranks, tmp_path: Path) -> None:
    brake = limited(ranks, tmp_path, [1900.0, 1901.0])
    odd, fine = stepped(brake, 1, False), stepped(brake, 2, True)
    assert (odd.should_save, odd.should_training_stop) == (False, False)
    assert (fine.should_save, fine.should_training_stop, brake.reason) == (True, True, Reason.TIME_LIMIT)
