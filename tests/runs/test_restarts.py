"""A run that a node or a rank failed is resumed by itself: after which reasons, how often, and once for each end."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from tests.runs.test_actions import checkpoint
from tests.runs.test_journal import attempt  # noqa: F401  the same small world
from training.spec.faults import WORTH_RETRYING, Reason
from training.spec.lint import Refused
from webapp.fleet.models import Node
from webapp.runs import actions, lifecycle
from webapp.runs.models import Attempt, Run
from webapp.runs.queue.waiting import waiting
from webapp.runs.states import RunState

pytestmark = pytest.mark.django_db


@pytest.fixture
def patient(attempt: Attempt) -> Attempt:  # noqa: F811
    """The attempt of a run that may be restarted twice."""
    attempt.run.recipe["limits"]["restarts"] = 2
    attempt.run.save(update_fields=["recipe"])
    return attempt


def failed(attempt: Attempt, reason: Reason = Reason.RANK_FAILED) -> Attempt:  # noqa: F811
    run = Run.objects.get(pk=attempt.run_id)
    assert lifecycle.move(run, RunState.FAILED, actor="t", cause="boom", attempt=attempt, reason=reason)
    attempt.refresh_from_db()
    return attempt


def again(attempt: Attempt) -> Attempt | None:  # noqa: F811
    return actions.restart(Run.objects.get(pk=attempt.run_id), attempt)


@pytest.mark.parametrize("reason", list(Reason))
def test_it_restarts_after_what_another_try_may_mend_alone(patient: Attempt, reason: Reason) -> None:
    never = {Reason.CONFIGURATION, Reason.DATA, Reason.DISK_FULL, Reason.NON_FINITE, Reason.PREFLIGHT}
    made = again(failed(patient, reason))
    assert (made is not None) == (reason in WORTH_RETRYING)
    assert reason not in never or made is None
    assert Run.objects.get().state == ("queued" if made else "failed")


def test_it_goes_on_from_the_newest_complete_checkpoint_and_names_what_it_passed_over(patient: Attempt) -> None:
    checkpoint(patient, 2)
    checkpoint(patient, 4)
    checkpoint(patient, 6, completed_at=None)
    made = again(failed(patient))
    assert made is not None
    assert (made.number, made.restart, made.resume_from.step) == (2, 1, 4)
    move = made.run.transitions.last()
    assert (move.new, move.actor, move.attempt) == ("queued", "Shardboard", made)
    words = "from step 4; passed over as incomplete: step 6 of attempt 1 (on 0 of 1 nodes)"
    assert move.cause.startswith(f"restarted 1 of 2 {words}")


def test_without_a_checkpoint_it_starts_afresh(patient: Attempt) -> None:
    made = again(failed(patient))
    assert made is not None
    assert made.resume_from is None
    assert "afresh" in made.run.transitions.last().cause


def test_an_end_that_is_told_twice_restarts_once(patient: Attempt) -> None:
    first = failed(patient)
    assert again(first) is not None
    assert again(first) is None
    assert Attempt.objects.count() == 2


def test_restarts_in_a_row_are_counted_and_a_persons_resume_begins_anew(patient: Attempt) -> None:
    checkpoint(patient, 2)
    now = patient
    for number in (1, 2):
        found = again(failed(now))
        assert found is not None
        assert found.restart == number
        now = found
    assert again(failed(now)) is None
    resumed = actions.resume(Run.objects.get(), "ada")
    assert resumed.restart == 0
    assert again(failed(resumed)) is not None


def test_each_waits_longer_than_the_one_before() -> None:
    delays = [actions.restart_delay(number).total_seconds() for number in (1, 2, 3, 4, 5, 100)]
    assert delays == [15, 60, 240, 900, 900, 900]


def test_by_default_and_after_a_request_to_stop_nothing_is_restarted(attempt: Attempt) -> None:  # noqa: F811
    assert again(failed(attempt)) is None


def test_a_run_that_was_asked_to_stop_stays_down(patient: Attempt) -> None:
    Attempt.objects.update(stop_requested_at=timezone.now())
    assert again(failed(patient, Reason.OUT_OF_GPU_MEMORY)) is None


def test_without_the_nodes_that_hold_the_checkpoint_it_is_refused(patient: Attempt) -> None:
    checkpoint(patient, 2)
    ended = failed(patient)
    Node.objects.update(in_service=False, removed_at=timezone.now())
    with pytest.raises(Refused, match="not reached any more"):
        again(ended)
    assert Run.objects.get().state == "failed"


def test_a_run_that_rests_before_its_restart_lets_others_by(patient: Attempt) -> None:
    made = again(failed(patient))
    assert made is not None
    behind = order_another(patient.run)
    told = waiting(behind)
    assert told is not None
    assert (told.runs, told.text) == ((), "starts now: its nodes are free")
    Attempt.objects.filter(pk=made.pk).update(not_before=timezone.now() - timedelta(seconds=1))
    told = waiting(behind)
    assert told is not None
    assert told.runs == (patient.run.pk,)


def order_another(run: Run) -> Run:
    made = actions.create(actions.Order("behind", "tiny", {}, run.model, run.dataset, run.cluster), None)
    actions.launch(made, "ada")
    return made


def test_a_resume_that_passes_over_a_torn_checkpoint_says_so(attempt: Attempt) -> None:  # noqa: F811
    checkpoint(attempt, 4)
    checkpoint(attempt, 6, completed_at=None)
    again: Any = actions.resume(failed(attempt).run, "ada")
    cause = again.run.transitions.last().cause
    assert cause == "resumed from step 4; passed over as incomplete: step 6 of attempt 1 (on 0 of 1 nodes)"
