"""Which checkpoints stay: the reasons in words, and what holds for every history."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.spec.retention import Seen, best_of, judged
from training.spec.sections.checkpoints import Checkpoints


def rule(**fields: Any) -> Checkpoints:
    return Checkpoints(**{"every_steps": 250, **fields})


def why(found: list[Seen], **fields: Any) -> dict[int, str]:
    return {verdict.step: ("" if verdict.kept else "- ") + verdict.why for verdict in judged(found, rule(**fields))}


def test_by_default_the_newest_three_stay() -> None:
    assert why([Seen(step) for step in (250, 500, 750, 1000)]) == {
        250: "- older than the newest 3",
        500: "newest 3",
        750: "newest 3",
        1000: "last complete one; newest 3",
    }


def test_each_reason_is_told() -> None:
    found = [
        Seen(250, metric=0.81, pinned=True),
        Seen(500, metric=0.8, held=(7, 9)),
        Seen(750, metric=0.5, measured_at=700),
        Seen(1000, metric=0.9),
        Seen(1250, metric=math.nan),
        Seen(1500, complete=False),
        Seen(1750),
        Seen(2000, metric=0.7),
        Seen(2250, complete=False),
    ]
    assert why(found, keep=1, keep_best=2, keep_every=1000) == {
        250: "pinned",
        500: "held by export 7; held by export 9",
        750: "best 2 by eval_loss (0.5 at step 700)",
        1000: "every 1000",
        1250: "- older than the newest 1; no eval_loss to go by; no multiple of 1000",
        1500: "- torn, and older than the last complete one",
        1750: "- older than the newest 1; no eval_loss to go by; no multiple of 1000",
        2000: "last complete one; best 2 by eval_loss (0.7); every 1000",
        2250: "newer than the last complete one, so it may be being written",
    }


def test_without_a_complete_one_nothing_goes() -> None:
    assert set(why([Seen(250, complete=False), Seen(500, complete=False)]).values()) == {"none is complete yet"}


def test_of_equals_the_one_measured_at_its_own_step_is_best_then_the_oldest() -> None:
    """An evaluation counts for all saves until the next; a newer equal one never moves an older one out."""
    late, own, same = (
        Seen(750, metric=0.5, measured_at=700),
        Seen(1000, metric=0.5, measured_at=1000),
        Seen(1250, metric=0.5),
    )
    assert best_of([same, late, own], rule(keep_best=3)) == [1000, 1250, 750]
    assert why([late, own, same, Seen(1500)], keep=1, keep_best=1)[1000] == "best 1 by eval_loss (0.5)"


steps = st.integers(1, 40)
metrics = st.none() | st.floats(allow_nan=True, allow_infinity=True) | st.sampled_from([0.5, 0.25])


@st.composite
def histories(draw: st.DrawFn) -> list[Seen]:
    found = []
    for step in draw(st.lists(steps, unique=True, max_size=20)):
        at = draw(st.none() | st.integers(1, step))
        held = draw(st.sampled_from([(), (), (3,)]))
        found.append(
            Seen(step, draw(st.booleans()), draw(metrics), at, draw(st.sampled_from([False, False, True])), held)
        )
    return found


@st.composite
def rules(draw: st.DrawFn) -> Checkpoints:
    every = draw(st.integers(1, 4))
    best = draw(st.integers(0, 4))
    return Checkpoints(
        every_steps=every, keep=draw(st.integers(1, 5)), keep_best=best, keep_every=every * draw(st.integers(0, 3)),
        best_metric="loss" if best and draw(st.booleans()) else "eval_loss",
    )  # fmt: skip


@given(histories(), rules())
def test_what_holds_for_every_history(found: list[Seen], section: Checkpoints) -> None:
    verdicts = {verdict.step: verdict for verdict in judged(found, section)}
    assert list(verdicts) == sorted(seen.step for seen in found)
    assert all(verdict.reasons for verdict in verdicts.values())
    assert judged(reversed(found), section) == list(verdicts.values())
    complete = sorted(seen.step for seen in found if seen.complete)
    assert all(verdicts[step].kept for step in complete[-section.keep :])
    for seen in found:
        kept = verdicts[seen.step].kept
        assert kept or not (seen.pinned or seen.held or not complete or seen.step > complete[-1])
        if seen.complete and section.keep_every:
            assert kept or seen.step % section.keep_every
        if seen.complete and not (seen.pinned or seen.held or seen.step in complete[-section.keep :]):
            assert not kept or seen.comparable or (section.keep_every and seen.step % section.keep_every == 0)


@given(histories(), rules())
def test_what_stays_stays_when_judged_again(found: list[Seen], section: Checkpoints) -> None:
    """Each save judges what the one before left, and comes to the same."""
    kept = {verdict.step: verdict for verdict in judged(found, section) if verdict.kept}
    assert judged([seen for seen in found if seen.step in kept], section) == list(kept.values())


@given(st.lists(metrics, min_size=1, max_size=25), rules())
def test_saved_one_by_one_the_best_and_the_newest_of_all_are_there(
    values: list[float | None], section: Checkpoints
) -> None:
    """What was deleted on the way is missed by nobody at the end."""
    saved = [Seen(section.every_steps * n, metric=value) for n, value in enumerate(values, 1)]
    there: list[Seen] = []
    for one in saved:
        kept = {verdict.step for verdict in judged([*there, one], section) if verdict.kept}
        there = [seen for seen in [*there, one] if seen.step in kept]
    assert {seen.step for seen in there} == {v.step for v in judged(saved, section) if v.kept}
    assert set(best_of(saved, section)) <= {seen.step for seen in there}


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"keep_every": 600}, "steps 3000, 6000, 9000, ... would match; set it to 500 or 750"),
        ({"keep_every": 100}, "steps 500, 1000, 1500, ... would match; set it to 250"),
        ({"best_metric": "loss"}, "it is not read while keep_best is 0"),
    ],
)
def test_a_rule_that_means_nothing_is_refused(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        rule(**fields)
