"""A checkpoint of two ranks gone on from on one and on four: the same rows in the same steps, and all of it said."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.prove.trials import checkpoints_of, going_on
from tests.prove.watched import main, rows_of
from tests.training import ranks_harness
from tests.training.attempts import Attempts
from tests.training.launch import Launch, curve, of_kind, recipe
from training.spec.folder import JobFolder
from training.spec.plan import NodePlan
from training.spec.recipe import Recipe

pytestmark = pytest.mark.ranks
RESHARDED = {
    "weights": "resharded",
    "optimizer": "resharded",
    "scheduler": "restored",
    "rng": "fresh",
    "data_position": "restored",
    "tokens": "restored",
}


@dataclass
class Saved:
    """A run of two ranks that saved at step 3, and the launch to go on with."""

    launch: Launch
    plans: list[NodePlan]

    def on(self, ranks: int, batch: int, attempt: int, **changes: object) -> tuple[JobFolder, list[int]]:
        """Go on from step 3 on so many ranks, each with `batch` rows at once."""
        self.launch.processes = ranks
        plans = self.launch.plans(asked(batch), attempt)
        place = checkpoints_of(self.plans[0]) / "checkpoint-3"
        return plans[0].folder, run([going_on(plan, place, **changes) for plan in plans])


def asked(batch: int, epochs: float = 0.0) -> Recipe:
    return recipe(
        optimisation={"per_device_batch": batch, "epochs": epochs}, checkpoints={"every_steps": 3, "at_end": False}
    )


def run(plans: list[NodePlan]) -> list[int]:
    forked = ranks_harness.start(plans, main)
    try:
        return forked.wait()
    finally:
        forked.end()


@pytest.fixture(scope="module")
def saved(attempts: Attempts) -> Saved:
    launch = attempts.launch("world", nodes=1, processes=2)
    plans = launch.plans(asked(2))
    assert run(plans) == [0, 0], Path(plans[0].folder.log).read_text()
    return Saved(launch, plans)


def steps(folder: JobFolder) -> dict[int, list[str]]:
    """Return the rows of each step over all ranks."""
    found: dict[int, list[str]] = {}
    for (step, _), ids in rows_of(Path(folder.path)).items():
        found[step] = sorted(found.get(step, []) + ids)
    return found


@pytest.mark.parametrize(("ranks", "batch", "attempt"), [(4, 1, 2), (1, 4, 3)])
def test_another_number_of_ranks_goes_on_in_place(saved: Saved, ranks: int, batch: int, attempt: int) -> None:
    folder, codes = saved.on(ranks, batch, attempt)
    assert codes == [0] * ranks, Path(folder.log).read_text()
    (resumed,) = of_kind(folder, "resumed")
    assert (resumed.step, resumed.data["saved_on"], resumed.data["world_size"]) == (3, 2, ranks)
    assert resumed.data["parts"] == RESHARDED
    assert resumed.data["rows_again"] == 0
    assert resumed.data["changed"] == []
    unbroken = saved.plans[0].folder
    assert steps(folder) == {step: ids for step, ids in steps(unbroken).items() if step > 3}
    names = ("loss", "grad_norm", "learning_rate", "num_tokens")
    whole, part = curve(unbroken, names), curve(folder, names)
    assert list(part) == [4, 5, 6]
    for step, values in part.items():
        loss, norm, *exact = values
        assert exact == whole[step][2:]
        assert float(loss) == pytest.approx(float(whole[step][0]), rel=1e-4)
        assert float(norm) == pytest.approx(float(whole[step][1]), rel=1e-3)  # other sums, other rounding: seen 1.2e-4


def test_rows_that_are_no_whole_step_are_seen_again_and_said(saved: Saved) -> None:
    folder, codes = saved.on(2, 4, 4)  # 12 rows are done, and a step takes 8 now
    assert codes == [0, 0], Path(folder.log).read_text()
    (resumed,) = of_kind(folder, "resumed")
    assert resumed.data["rows_again"] == 4
    unbroken, found = steps(saved.plans[0].folder), steps(folder)
    assert found[4] == sorted(unbroken[3] + unbroken[4])


def test_a_part_begun_anew_is_said_and_is(saved: Saved, attempts: Attempts) -> None:
    folder, codes = saved.on(2, 2, 5, fresh=("scheduler", "tokens", "data_position"), model=str(attempts.poisoned))
    assert codes == [0, 0], Path(folder.log).read_text()
    (resumed,) = of_kind(folder, "resumed")
    assert resumed.data["changed"] == ["model"]  # its weights don't count: the checkpoint's do
    texts = [warning.data["text"] for warning in of_kind(folder, "warning")]
    assert "checkpoint-3 was made with another base model than this one" in texts
    anew = {part for part, fate in resumed.data["parts"].items() if fate == "fresh"}
    assert anew == {"scheduler", "tokens", "data_position"}
    names = ("learning_rate", "num_tokens")
    whole, part = curve(saved.plans[0].folder, names), curve(folder, names)
    assert part[4] == whole[1]
    assert steps(folder)[4] == steps(saved.plans[0].folder)[1]


def test_passes_in_steps_of_another_size_are_refused(saved: Saved) -> None:
    folder, codes = saved.on(2, 4, 7, recipe=asked(4, epochs=1.0))
    assert codes == [1, 1]
    (finished,) = of_kind(folder, "finished")
    assert finished.data["reason"] == "configuration"
    assert "optimisation.epochs: a step takes 8 rows and took 4 before checkpoint-3" in finished.data["text"]


def test_a_flipped_byte_ends_it_for_the_checkpoints_sake(saved: Saved) -> None:
    shard = checkpoints_of(saved.plans[0]) / "checkpoint-3" / "optimizer_0" / "__1_0.distcp"
    whole = shard.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    shard.write_bytes(flipped)
    try:
        folder, codes = saved.on(2, 2, 6)
    finally:
        shard.write_bytes(whole)
    assert codes == [1, 1]
    (finished,) = of_kind(folder, "finished")
    assert finished.data["reason"] == "checkpoint"
    assert "optimizer_0/__1_0.distcp was changed after its save. Choose another" in finished.data["text"]
