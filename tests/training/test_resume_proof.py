"""Two trials of `make prove-resume`: killed in a step, and in the middle of an asynchronous save."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.prove.trials import EVERY, SAVES, STEPS, TEARS, Trials, draw

pytestmark = pytest.mark.ranks


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Trials:
    return Trials(tmp_path_factory.mktemp("trials"))


def test_killed_in_a_step_it_goes_on_exactly(trials: Trials) -> None:
    outcome = trials.trial(0)
    assert not outcome.kill.file
    assert outcome.differs == []


def test_killed_in_a_save_it_skips_the_torn_one_and_goes_on_exactly(trials: Trials) -> None:
    outcome = trials.trial(3)
    assert outcome.kill.file
    assert outcome.asynchronous
    assert outcome.skipped == [f"checkpoint-{outcome.kill.step}"]
    assert outcome.went_on_from == outcome.kill.step - EVERY
    assert outcome.differs == []


def test_a_proof_tells_a_difference(trials: Trials, tmp_path: Path) -> None:
    assert trials._differences(trials.unbroken, 0) == []
    assert trials._differences(trials.unbroken, 6)[-1] == "rows of a batch differ"


def test_trials_draw_every_place_in_time() -> None:
    drawn = [draw(seed) for seed in range(200)]
    assert {kill.file for kill in drawn} == {"", *TEARS[0], *TEARS[1]}
    assert {kill.step for kill in drawn if kill.file} == set(SAVES)
    assert max(kill.step for kill in drawn) == STEPS
