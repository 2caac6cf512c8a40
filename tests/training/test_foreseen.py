"""What is foreseen is what the rule does: held against whole histories."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.training.test_retention import metrics, rule, rules
from training.spec.foreseen import Saves, foreseen, most, standing
from training.spec.retention import Seen, judged
from training.spec.sections.checkpoints import Checkpoints


def test_it_is_said_in_one_sentence() -> None:
    found = foreseen(rule(keep_best=1, keep_every=500), 2000)
    assert found.sentence == (
        "with 2,000 steps these stay: 1,500, 1,750, 2,000 (newest 3), 500, 1,000 (every 500), the best by eval_loss;"
        " at most 7 on disk at once, the one being written among them"
    )


@pytest.mark.parametrize(
    ("fields", "steps", "words"),
    [
        ({}, 500, "with 500 steps these stay: 250, 500 (newest 3); at most 2 on disk"),
        ({"keep": 1}, 260, "these stay: 260 (newest 1); at most 2 on disk"),
        ({"at_end": False}, 100, "with 100 steps none is saved"),
        ({"keep": 1, "keep_every": 250}, 5000, "250, 500, ..., 4,750 (every 250); at most 20 on disk"),
        ({"keep_best": 2}, 9999, "2 best by eval_loss; at most 6 on disk"),
        ({"every_minutes": 5, "keep_best": 2}, 250, "at most 6 on disk"),
    ],
)
def test_few_saves_and_many(fields: dict[str, object], steps: int, words: str) -> None:
    assert words in foreseen(rule(**fields), steps).sentence


def test_a_million_saves_are_counted_not_made() -> None:
    section = rule(every_steps=1, keep_every=10)
    assert most(section, 10_000_000) == 999_999 + 3 + 1


def history(section: Checkpoints, steps: int, values: list[float | None]) -> tuple[list[Seen], int]:
    """Save one by one; return what is there at the end and the most at once."""
    saves = Saves(section, steps)
    there: list[Seen] = []
    peak = 0
    for number in range(1, len(saves) + 1):
        there.append(Seen(saves.at(number), metric=values[number % len(values)]))
        peak = max(peak, len(there))
        kept = {verdict.step for verdict in judged(there, section) if verdict.kept}
        there = [seen for seen in there if seen.step in kept]
    return there, peak


@given(rules(), st.integers(1, 80), st.lists(metrics, min_size=1, max_size=30))
def test_no_history_holds_more_and_what_is_foreseen_is_there(
    section: Checkpoints, steps: int, values: list[float | None]
) -> None:
    there, peak = history(section, steps, values)
    found = foreseen(section, steps)
    assert peak <= found.most
    left = {seen.step for seen in there}
    assert {*found.newest, *found.for_good} <= left
    assert len(left) <= len(found.newest) + len(found.for_good) + found.best


@given(rules(), st.integers(1, 80))
def test_the_worst_history_comes_to_as_many(section: Checkpoints, steps: int) -> None:
    """Losses that rise, but for those that stay anyhow, which are never best."""
    saves = Saves(section, steps)
    for_good = section.keep_every
    values = [None if for_good and saves.at(n) % for_good == 0 else float(n) for n in range(1, len(saves) + 1)]
    there: list[Seen] = []
    peak = 0
    for number, value in enumerate(values, 1):
        there.append(Seen(saves.at(number), metric=value))
        peak = max(peak, len(there))
        kept = {verdict.step for verdict in judged(there, section) if verdict.kept}
        there = [seen for seen in there if seen.step in kept]
    assert peak == most(section, steps)


@given(rules(), st.integers(0, 60))
def test_it_never_falls(section: Checkpoints, saves: int) -> None:
    assert standing(section, saves) <= standing(section, saves + 1) <= standing(section, saves) + 1
