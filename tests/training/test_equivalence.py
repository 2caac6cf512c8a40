"""However a step's rows are dealt out, the step is the same, and the same as that of a plain PyTorch loop."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from tests.training import plain_loop, ranks_harness
from tests.training.attempts import Attempts
from tests.training.launch import curve, recipe
from training.spec.recipe import Recipe

pytestmark = pytest.mark.ranks

ROWS = 8  # of a step
STEPS = 20
CLOSE = 1e-4  # relative


def write_rows(folder: Path) -> Path:
    """Write chats of very different length, more than the steps need, in no order."""
    folder.mkdir(parents=True)
    train = folder / "train.jsonl"
    with train.open("w") as file:
        for n in range(ROWS * STEPS + 5):
            answer = " ".join(str((n * k) % 17) for k in range(1 + (n * 29) % 37))
            turns = [{"role": "user", "content": f"Row {n}?"}, {"role": "assistant", "content": answer}]
            file.write(json.dumps({"messages": turns}) + "\n")
    (folder / "test.jsonl").write_text(train.read_text().splitlines(keepends=True)[0])
    return train


def small(ranks: int, batch: int, steps: int) -> Recipe:
    how = {"per_device_batch": batch, "accumulation": ROWS // (ranks * batch), "max_steps": steps}
    return recipe(
        data={"max_length": 96},
        optimisation=how,
        fsdp={"activation_checkpointing": False},
        checkpoints={"every_steps": STEPS + 1, "at_end": False},
    )


def sharded(attempts: Attempts, ranks: int, batch: int, steps: int) -> dict[int, tuple[float, float]]:
    """Train on so many ranks; return loss and gradient norm of each step."""
    launch = attempts.launch(f"equal-{ranks}-{batch}-{steps}", nodes=1, processes=ranks, rows=write_rows)
    plans = launch.plans(small(ranks, batch, steps))
    assert ranks_harness.run(plans) == [0] * ranks, Path(plans[0].folder.log).read_text()
    found = curve(plans[0].folder, ("loss", "grad_norm"))
    return {step: (float(loss), float(norm)) for step, (loss, norm) in found.items()}


def plain(attempts: Attempts, tmp_path: Path, steps: int) -> dict[int, tuple[float, float]]:
    asked = small(1, ROWS, steps)
    how = asked.optimisation
    plan = plain_loop.Plan(
        rows=ROWS,
        steps=steps,
        learning_rate=how.learning_rate,
        warmup_steps=math.ceil(how.warmup_ratio * steps),
        weight_decay=how.weight_decay,
        max_grad_norm=how.max_grad_norm,
        seed=how.seed,
        max_length=asked.data.max_length,
    )
    return plain_loop.train(attempts.model, write_rows(tmp_path / "rows"), plan)


def close(found: dict[int, tuple[float, float]], wanted: dict[int, tuple[float, float]]) -> None:
    assert list(found) == list(wanted)
    for step, values in wanted.items():
        assert found[step] == pytest.approx(values, rel=CLOSE), f"step {step}"


def test_twenty_steps_equal_a_plain_loop(attempts: Attempts, tmp_path: Path) -> None:
    """On two ranks, with the gradient of two forward passes added up."""
    wanted = plain(attempts, tmp_path, STEPS)
    assert wanted[STEPS][0] < wanted[1][0] - 1  # it has something to lose
    close(sharded(attempts, 2, 2, STEPS), wanted)


@pytest.mark.parametrize(("ranks", "batch"), [(1, 8), (1, 1), (1, 4), (2, 4), (2, 1)])
def test_a_step_is_the_same_however_its_rows_are_dealt_out(
    attempts: Attempts, tmp_path: Path, ranks: int, batch: int
) -> None:
    close(sharded(attempts, ranks, batch, 3), plain(attempts, tmp_path, 3))
