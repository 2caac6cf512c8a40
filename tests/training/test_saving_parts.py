"""What of a checkpoint comes back, and where in the data: decided without ranks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from training.endings import reason_for
from training.saving.bad import BadCheckpoint
from training.saving.position import Position, Stride, found_again
from training.saving.progress import Origin, Progress, moved_by, read
from training.saving.restored import Resume, damaged, fates
from training.spec.faults import Reason
from training.spec.lint import Refused
from training.spec.parts import Fate, StatePart
from training.spec.sections.optimisation import Optimisation

FOLDER = Path("/runs/checkpoint-6")
NAMES = {
    "pytorch_model_fsdp_0/.metadata",
    "trainer_state.json",
    "optimizer_0/.metadata",
    "scheduler.pt",
    "rng_state_0.pth",
    "rng_state_1.pth",
    "progress.json",
}


def fate(names: set[str] = NAMES, *, ranks: int = 2, fresh: tuple[str, ...] = ()) -> dict[StatePart, Fate]:
    return fates(FOLDER, names, 2, ranks, frozenset(fresh))


def test_on_as_many_ranks_all_of_it_is_restored() -> None:
    assert set(fate().values()) == {Fate.RESTORED}
    assert list(fate()) == list(StatePart)


def test_on_other_ranks_shards_are_cut_anew_and_random_numbers_begin_anew() -> None:
    found = fate(ranks=4)
    assert found.pop(StatePart.RNG) == Fate.FRESH
    assert found.pop(StatePart.WEIGHTS) == found.pop(StatePart.OPTIMIZER) == Fate.RESHARDED
    assert set(found.values()) == {Fate.RESTORED}


@pytest.mark.parametrize(
    ("lost", "part"),
    [
        ("pytorch_model_fsdp_0/.metadata", "weights"),
        ("optimizer_0/.metadata", "optimizer"),
        ("scheduler.pt", "scheduler"),
        ("rng_state_1.pth", "rng"),
        ("progress.json", "data_position"),
    ],
)
def test_a_missing_part_stops_and_names_the_way_out(lost: str, part: str) -> None:
    with pytest.raises(BadCheckpoint) as caught:
        fate(NAMES - {lost})
    (problem,) = caught.value.problems
    assert problem.reason == f"checkpoint-6 has no {lost}, so its {part} can't be restored"
    assert (f"fresh: [{part}]" in problem.fix) == (part != "weights")
    assert reason_for(caught.value) == Reason.CHECKPOINT


def test_a_part_begins_anew_when_a_person_says_so() -> None:
    found = fate(NAMES - {"scheduler.pt"}, fresh=("scheduler", "tokens"))
    assert [part for part, was in found.items() if was == Fate.FRESH] == [StatePart.SCHEDULER, StatePart.TOKENS]


def progress(**fields: Any) -> Progress:
    return Progress(**{"step": 6, "epoch": 1, "rows": 24, "rows_in_all": 60, "seed": 42, "tokens": 900, **fields})


@pytest.mark.parametrize(
    ("stride", "position", "again"),
    [
        (Stride(batches=15, rows=4, accumulation=1), Position(1, 6), 0),
        (Stride(batches=15, rows=4, accumulation=2), Position(1, 6), 0),
        (Stride(batches=8, rows=8, accumulation=1), Position(1, 3), 0),
        (Stride(batches=60, rows=1, accumulation=4), Position(1, 24), 0),
        (Stride(batches=8, rows=8, accumulation=2), Position(1, 2), 8),  # 24 rows are no whole step of 16
        (Stride(batches=6, rows=10, accumulation=1), Position(1, 2), 4),
        (Stride(batches=1, rows=64, accumulation=1), Position(1, 0), 24),
    ],
)
def test_the_place_in_the_data_is_kept_in_rows(stride: Stride, position: Position, again: int) -> None:
    assert found_again(progress(), stride) == (position, again)


def test_a_pass_that_ended_with_a_short_batch_is_done() -> None:
    stride = Stride(batches=16, rows=4, accumulation=1)  # 62 rows: the last batch is filled up
    position = Position(0, 15)
    assert position.rows(stride, 62) == 60
    position.advance(stride)
    assert position == Position(1, 0)
    assert found_again(progress(epoch=1, rows=0), stride) == (position, 0)


def resume(**fields: Any) -> Resume:
    parts = dict.fromkeys(StatePart, Fate.RESTORED)
    return Resume(FOLDER, 6, 2, 2, parts, progress=progress(**fields))


@pytest.mark.parametrize(("rows", "seed", "why"), [(61, 42, "has 61 rows and had 60"), (60, 7, "seed is 7 and was 42")])
def test_a_place_in_other_data_is_none(rows: int, seed: int, why: str) -> None:
    resume().check_data(60, 42)
    with pytest.raises(BadCheckpoint, match=why) as caught:
        resume().check_data(rows, seed)
    assert "fresh: [data_position]" in str(caught.value)


def test_passes_are_not_counted_in_steps_of_two_sizes() -> None:
    resume(rows_per_step=8).check_epochs(8)
    with pytest.raises(Refused) as caught:
        resume(rows_per_step=8).check_epochs(4)
    (problem,) = caught.value.problems
    assert problem.field == "optimisation.epochs"
    assert problem.reason.startswith("a step takes 4 rows and took 8 before checkpoint-6")
    assert problem.fix.endswith("that make 8, or set max_steps and no epochs.")


def test_other_data_or_another_model_is_told() -> None:
    was = resume(origin=Origin(data="a", model="b"))
    assert was.changed(Origin(data="a", model="b")) == {}
    assert was.changed(Origin(data="a", model="c")) == {
        "model": "checkpoint-6 was made with another base model than this one"
    }
    assert list(was.changed(Origin(data="x", model="y"))) == ["data", "model"]


def test_another_learning_rate_is_told_unless_it_counts() -> None:
    then, now = (moved_by(Optimisation(learning_rate=rate)) for rate in (1e-3, 0.5))
    assert "learning_rate 0.001, schedule cosine" in then
    was = resume(origin=Origin(optimisation=then))
    assert was.changed(Origin(optimisation=then)) == {}
    assert "its peak learning rate, betas" in was.changed(Origin(optimisation=now))["optimisation"]
    was.parts |= {StatePart.OPTIMIZER: Fate.FRESH, StatePart.SCHEDULER: Fate.FRESH}
    assert was.changed(Origin(optimisation=now)) == {}


def test_progress_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    """It can't be compared, and says nothing."""
    text = '{"step": 6, "epoch": 1, "rows": 24, "rows_in_all": 60, "seed": 42, "tokens": 900}'
    (tmp_path / "progress.json").write_text(text)
    old = Resume(FOLDER, 6, 2, 4, dict.fromkeys(StatePart, Fate.RESTORED), progress=read(tmp_path))
    assert old.progress == progress()
    assert old.changed(Origin(data="a", model="b")) == {}
    old.check_epochs(4)


def test_what_cant_be_read_is_the_checkpoints_fault(tmp_path: Path) -> None:
    with pytest.raises(BadCheckpoint, match=r"checkpoint-6 can't be read: .*progress.json"), damaged(FOLDER):
        read(tmp_path)
    with pytest.raises(OSError, match="No space"), damaged(FOLDER):
        raise OSError(28, "No space left on device")
