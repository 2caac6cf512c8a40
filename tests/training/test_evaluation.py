"""Figures that are sums over ranks and batches: an evaluation's loss, and the tokens of a pass's last step."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from datasets import Dataset

from tests.training import ranks_harness
from tests.training.attempts import Attempts
from tests.training.launch import Launch, of_kind, recipe
from training.saving.progress import read
from training.spec.events import Event
from training.watch.evaluation import filled
from training.watch.tokens import IGNORED

pytestmark = pytest.mark.ranks

STILL = 1e-12  # a learning rate that moves no weight by a digit that a loss has
ROWS = 7  # a multiple of no batch that is tried here


def write_uneven(folder: Path) -> None:
    """Write rows of which each has up to nine times the trained tokens of another."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("train", "test"):
        rows = [
            [
                {"role": "user", "content": f"{name} {n}"},
                {"role": "assistant", "content": "yes, so it is. " * (n % 4 * 3 + 1)},
            ]
            for n in range(ROWS)
        ]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps({"messages": turns}) + "\n" for turns in rows))


def trained(attempts: Attempts, ranks: int, batch: int, *, packing: bool = False, steps: int = 2) -> Launch:
    """Take steps that move nothing, of two batches each, and evaluate after every second."""
    launch = attempts.launch(f"uneven-{ranks}-{batch}-{packing}", nodes=1, processes=ranks, rows=write_uneven)
    how = {
        "per_device_batch": batch, "accumulation": 2, "max_steps": steps, "evaluate_every": 2, "learning_rate": STILL,
    }  # fmt: skip
    plans = launch.plans(recipe(optimisation=how, checkpoints={"every_steps": 2}, data={"packing": packing}))
    assert ranks_harness.run(plans) == [0] * ranks, Path(plans[0].folder.log).read_text()
    return launch


def told(launch: Launch, kind: str) -> list[Event]:
    return of_kind(launch.plans(recipe())[0].folder, kind)


@pytest.fixture(scope="module")
def on_two(attempts: Attempts) -> Launch:
    return trained(attempts, 2, 1, steps=4)


@pytest.fixture(scope="module")
def plain(attempts: Attempts, on_two: Launch) -> float:
    """The loss by hand: row by row, summed up in double, over all trained tokens."""
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(attempts.model, dtype=torch.float32)
    (file,) = on_two.scratch(0).rglob("test.arrow")
    loss, tokens = 0.0, 0
    for row in Dataset.from_file(str(file)):
        ids, labels = torch.tensor([row["input_ids"]]), torch.tensor(row["labels"])[1:]
        with torch.no_grad():
            logits = model(input_ids=ids).logits[0, :-1].double()
        loss += float(torch.nn.functional.cross_entropy(logits, labels, ignore_index=IGNORED, reduction="sum"))
        tokens += int((labels != IGNORED).sum())
    return loss / tokens


@pytest.mark.parametrize(("ranks", "batch", "packing"), [(1, 1, False), (1, 4, False), (2, 4, False), (2, 1, True)])
def test_an_evaluation_s_loss_is_that_of_all_its_tokens(
    attempts: Attempts, plain: float, ranks: int, batch: int, packing: bool
) -> None:
    found = [e.data["loss"] for e in told(trained(attempts, ranks, batch, packing=packing), "evaluation")]
    assert found == pytest.approx([plain], rel=1e-6)


def test_so_it_is_on_two_ranks(on_two: Launch, plain: float) -> None:
    assert [e.data["loss"] for e in told(on_two, "evaluation")] == pytest.approx([plain, plain], rel=1e-6)


def test_no_rank_s_tokens_are_missed_at_the_end_of_a_pass(on_two: Launch) -> None:
    """Seven rows on two ranks: of each batch of the second step, TRL would count the first rank's alone."""
    lines = told(on_two, "metrics")
    ours = [e.data["tokens_per_second"] * e.data["step_seconds"] for e in lines]
    counts = [0.0, *(e.data["num_tokens"] for e in lines)]
    assert [later - earlier for earlier, later in pairwise(counts)] == pytest.approx(ours)
    for step in (2, 4):
        assert read(on_two.scratch(0) / f"runs/1/1/checkpoints/checkpoint-{step}").tokens == counts[step]


def test_rows_are_filled_up_with_what_is_not_trained() -> None:
    rows = Dataset.from_dict({"input_ids": [[5, 6, 7]] * 3, "labels": [[5, 6, 7]] * 3, "rows": [[1], [2], [3]]})
    more = filled(rows, 4)
    assert more.features == rows.features
    assert (len(more), more[:3], more[3]["labels"]) == (4, rows[:], [IGNORED, IGNORED])
    assert filled(rows, 3) is rows
