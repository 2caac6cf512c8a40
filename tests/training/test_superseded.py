"""Which checkpoints of earlier attempts a person is offered to delete."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.training.test_retention import histories, rule, rules
from training.spec.retention import Seen
from training.spec.sections.checkpoints import Checkpoints
from training.spec.superseded import NOT_GONE_ON_FROM, Past, superseded


def told(attempts: list[Past], section: Checkpoints) -> dict[tuple[int, int], str]:
    found = superseded(attempts, section)
    return {(old.attempt, old.verdict.step): ("" if old.verdict.kept else "- ") + old.verdict.why for old in found}


FIRST = Past(1, None, (Seen(250, metric=0.9), Seen(500, metric=0.2), Seen(750, metric=0.1), Seen(1000, complete=False)))


def test_what_a_later_attempt_went_on_from_may_go_once_that_one_has_saved() -> None:
    waiting = Past(2, (1, 500), (Seen(750, complete=False),))
    assert told([FIRST, waiting], rule()) == {}
    saved = Past(2, (1, 500), (Seen(750),))
    assert told([FIRST, saved], rule()) == {
        (1, 250): "- a later attempt went on from step 500 and has saved since",
        (1, 500): "- a later attempt went on from step 500 and has saved since",
        (1, 750): "- a later attempt went on from step 500 and has saved since, without this one",
        (1, 1000): "- torn, and a later attempt went on",
    }


def test_the_rule_holds_for_the_whole_line() -> None:
    """The better one at 750 was left for another try; the best of what led here is at 500."""
    saved = Past(2, (1, 500), (Seen(750, metric=0.4), Seen(1000, metric=0.3)))
    found = told([FIRST, saved], rule(keep_best=1, keep_every=250))
    assert found[1, 250] == "every 250"
    assert found[1, 500] == "best 1 by eval_loss of all attempts; every 250"
    assert found[1, 750].startswith("- ")


def test_it_goes_back_through_all_attempts() -> None:
    attempts = [
        FIRST,
        Past(2, (1, 500), (Seen(600),)),
        Past(3, None, (Seen(50),)),
        Past(4, (2, 600), (Seen(700, pinned=True), Seen(800, held=(5,)))),
        Past(5, (4, 800), (Seen(900),)),
        Past(6, (5, 900), ()),
    ]
    found = told(attempts, rule())
    assert found[3, 50] == NOT_GONE_ON_FROM
    assert (found[4, 700], found[4, 800]) == ("pinned", "held by export 5")
    assert found[2, 600] == "- a later attempt went on from step 600 and has saved since"
    assert not any(number >= 5 for number, _ in found)


def test_what_the_newest_begins_from_stays_until_that_has_saved() -> None:
    attempts = [FIRST, Past(2, (1, 500), (Seen(750),)), Past(3, (1, 250), (Seen(300, complete=False),))]
    assert told(attempts, rule())[1, 250] == "attempt 3 goes on from it"


def test_one_that_began_afresh_takes_nothing_away() -> None:
    found = told([FIRST, Past(2, None, (Seen(250),))], rule())
    assert set(found.values()) == {NOT_GONE_ON_FROM}


@given(st.lists(st.tuples(histories(), st.integers(0, 9), st.integers(1, 40)), max_size=6), rules())
def test_what_a_resume_or_a_mark_needs_is_never_offered(
    drawn: list[tuple[list[Seen], int, int]], section: Checkpoints
) -> None:
    attempts = [Past(n, (to, at) if 0 < to < n else None, tuple(found)) for n, (found, to, at) in enumerate(drawn, 1)]
    gone = {(old.attempt, old.verdict.step) for old in superseded(attempts, section) if not old.verdict.kept}
    for past in attempts:
        assert not any((past.number, seen.step) in gone for seen in past.checkpoints if seen.pinned or seen.held)
    complete = [(past.number, seen.step) for past in attempts for seen in past.checkpoints if seen.complete]
    assert not complete or max(complete) not in gone
    newest = max((number for number, _ in complete), default=0)
    assert all(number < newest for number, _ in gone)
    assert not any(past.resumed in gone for past in attempts if past.number > newest)
