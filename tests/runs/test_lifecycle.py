"""Moves are legal, atomic, recorded, and give nodes back at the end."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.runs.test_journal import attempt  # noqa: F401  the same small world
from training.spec.faults import SENTENCES, Reason
from webapp.fleet.models import Claim, Node
from webapp.runs import lifecycle
from webapp.runs.models import Attempt, Checkpoint, Event, Export, Run
from webapp.runs.states import EXPORT_STATES, TRANSITIONS, ExportState, RunState

pytestmark = pytest.mark.django_db


def test_a_move_is_recorded_and_told(attempt: Attempt) -> None:  # noqa: F811
    run = attempt.run
    assert lifecycle.move(run, RunState.PREPARING, actor="worker", cause="took n0")
    told = Event.objects.get(kind="state", data__new="preparing")
    assert (told.data["old"], told.data["cause"]) == ("queued", "took n0")
    assert run.transitions.last().actor == "worker"


def test_an_end_gives_the_nodes_back_and_says_why(attempt: Attempt) -> None:  # noqa: F811
    Claim.objects.create(node=Node.objects.get(), attempt=attempt)
    lifecycle.move(attempt.run, RunState.FAILED, actor="worker", cause="x", reason=Reason.DISK_FULL)
    run = Run.objects.get()
    assert (run.reason, run.reason_text) == ("disk_full", SENTENCES[Reason.DISK_FULL])
    assert run.ended_at is not None
    attempt.refresh_from_db()
    assert attempt.ended_at is not None
    assert not Claim.objects.exists()


def test_whoever_comes_second_changes_nothing(attempt: Attempt) -> None:  # noqa: F811
    first, second = Run.objects.get(), Run.objects.get()
    assert lifecycle.move(first, RunState.PREPARING, actor="a", cause="a")
    count = Event.objects.count()
    assert not lifecycle.move(second, RunState.STOPPED, actor="b", cause="b")
    assert second.state == "preparing"
    assert Event.objects.count() == count


@pytest.mark.parametrize("old", list(RunState))
def test_no_move_but_the_declared_ones(attempt: Attempt, old: RunState) -> None:  # noqa: F811
    for new in set(RunState) - TRANSITIONS[old]:
        Run.objects.update(state=old)
        with pytest.raises(lifecycle.IllegalMove):
            lifecycle.move(Run.objects.get(), new, actor="a", cause="a")


def test_an_export_s_moves_are_told_in_the_run_s_journal(attempt: Attempt) -> None:  # noqa: F811
    checkpoint = Checkpoint.objects.create(attempt=attempt, step=2, nodes=1, world_size=1)
    export = Export.objects.create(checkpoint=checkpoint, dtype="float32")
    for state in (ExportState.GATHERING, ExportState.FAILED):
        assert lifecycle.move_job(export, state, reason=Reason.PROOF if state == "failed" else None)
    assert export.reason_text == SENTENCES[Reason.PROOF]
    told = Event.objects.filter(kind="export", source=f"exportstate@{export.pk}").order_by("number")
    assert [e.data["new"] for e in told] == ["gathering", "failed"]
    for new in set(ExportState) - EXPORT_STATES.transitions["failed"]:
        with pytest.raises(lifecycle.IllegalMove):
            lifecycle.move_job(export, new)


def test_an_exports_move_takes_the_runs_row_before_its_own(attempt: Attempt) -> None:  # noqa: F811
    """As the journal does: in the other order two of them wait for each other."""
    saved = Checkpoint.objects.create(attempt=attempt, step=1, nodes=1, world_size=1)
    export = Export.objects.create(checkpoint=saved, dtype="float32")
    with CaptureQueriesContext(connection) as queries:
        assert lifecycle.move_job(export, ExportState.GATHERING)
    tables = [q["sql"].replace('"', "") for q in queries.captured_queries]
    run = next(i for i, sql in enumerate(tables) if " FROM runs_run " in sql)
    assert run < next(i for i, sql in enumerate(tables) if "UPDATE runs_export" in sql)
