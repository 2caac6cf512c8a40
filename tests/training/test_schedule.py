"""The planned learning rate equals the real one: transformers' own schedules, and what real ranks printed."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import get_scheduler

from tests.training import launch, ranks_harness
from tests.training.attempts import Attempts, write_rows
from training.spec.lint import parse_recipe
from training.spec.recipe import Recipe
from training.spec.schedule import learning_rate, learning_rates, warmup_steps


def recipe(**optimisation: object) -> Recipe:
    return parse_recipe({"optimisation": {"learning_rate": 3e-4, **optimisation}})


def transformers_own(asked: Recipe, total: int) -> list[float]:
    """The rate of each step, read before the step as the Trainer does."""
    how = asked.optimisation
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=how.learning_rate)
    scheduler = get_scheduler(
        how.schedule, optimizer, num_warmup_steps=warmup_steps(how, total), num_training_steps=total
    )
    found = []
    for _ in range(total):
        found.append(scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()
    return found


@pytest.mark.parametrize("schedule", ["cosine", "linear", "constant", "constant_with_warmup"])
@pytest.mark.parametrize("warmup", [{"warmup_ratio": 0.0}, {"warmup_ratio": 0.03}, {"warmup_steps": 7}])
@pytest.mark.parametrize("total", [1, 8, 333])
def test_every_step_is_transformers_own_to_the_last_digit(schedule: str, warmup: dict[str, float], total: int) -> None:
    asked = recipe(schedule=schedule, max_steps=max(total, 8), **warmup)
    planned = [learning_rate(asked, total, step) for step in range(1, total + 1)]
    assert [repr(rate) for rate in planned] == [repr(rate) for rate in transformers_own(asked, total)]


def test_a_long_run_is_told_in_few_points_with_its_corners() -> None:
    found = dict(learning_rates(recipe(warmup_steps=12_345, max_steps=1_000_000), 1_000_000, points=100))
    assert len(found) <= 103
    assert {1, 12_346, 1_000_000} <= set(found)
    assert found[1] == 0.0
    assert max(found.values()) == found[12_346] == 3e-4


@pytest.mark.ranks
@pytest.mark.parametrize(("ranks", "accumulation"), [(1, 1), (4, 2)])
def test_it_is_what_one_rank_and_four_ranks_print(
    attempts: Attempts, tmp_path: Path, ranks: int, accumulation: int
) -> None:
    """The Trainer steps the schedule once per optimizer step: neither ranks nor accumulation stretch it."""
    how = {"per_device_batch": 1, "accumulation": accumulation, "max_steps": 4, "warmup_ratio": 0.5}
    asked = launch.recipe(optimisation=how, checkpoints={"every_steps": 50})
    launched = launch.Launch(tmp_path, attempts.model, "rows", nodes=1, processes=ranks)
    write_rows(launched.scratch(0) / "datasets" / "rows")
    plans = launched.plans(asked)
    assert set(ranks_harness.run(plans)) == {0}, Path(plans[0].folder.log).read_text()
    printed = launch.curve(plans[0].folder, ["learning_rate"])
    assert printed == {step: [repr(rate)] for step, rate in learning_rates(asked, 4)}


@pytest.mark.ranks
def test_it_is_what_a_real_run_on_two_ranks_prints(attempts: Attempts) -> None:
    printed = launch.curve(attempts.unbroken.head, ["learning_rate"])
    planned = {step: [repr(rate)] for step, rate in learning_rates(launch.recipe(), 6)}
    assert printed == planned
