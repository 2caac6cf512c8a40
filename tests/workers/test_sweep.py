"""The sweep sends a look for everything due, once, and for leases whose holders are gone."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import OperationalError
from django.utils import timezone

from tests.workers.world import World
from webapp import dispatch
from webapp.runs import lifecycle
from webapp.runs.models import Attempt, Checkpoint, Export, Run
from webapp.runs.states import RunState
from workers import lease, sweep


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str | int, ...]]:
    """What is sent for runs and their jobs; each node is asked besides (test_leftovers.py)."""
    messages: list[tuple[str | int, ...]] = []

    def send(*message: str | int) -> None:
        if message[0] != dispatch.LOOK_AT_NODE:
            messages.append(message)

    monkeypatch.setattr(dispatch, "send", send)
    return messages


def due(run: Run, seconds: float = 0) -> None:
    Attempt.objects.filter(run=run).update(due_at=timezone.now() + timedelta(seconds=seconds))


def test_what_is_due_is_sent_once(world: World, sent: list[tuple[str | int, ...]]) -> None:
    run = world.run()
    sent.clear()
    due(run)
    sweep.sweep()
    sweep.sweep()
    assert sent == [(dispatch.ADVANCE_RUN, run.pk)]


def test_what_is_not_due_or_has_ended_is_left_alone(world: World, sent: list[tuple[str | int, ...]]) -> None:
    later, ended = world.run(), world.run()
    due(later, 100)
    lifecycle.move(ended, RunState.STOPPED, actor="t", cause="t")
    due(ended)
    sent.clear()
    sweep.sweep()
    assert sent == []


def test_a_held_lease_is_left_alone_until_it_runs_out(world: World, sent: list[tuple[str | int, ...]]) -> None:
    run = world.run()
    with lease.hold(run.attempt):
        due(run)
        sent.clear()
        sweep.sweep()
        assert sent == []
        Attempt.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
        due(run, 1000)
        sweep.sweep()
        assert sent == [(dispatch.ADVANCE_RUN, run.pk)]


def test_an_export_that_is_due_is_sent(world: World, sent: list[tuple[str | int, ...]]) -> None:
    checkpoint = Checkpoint.objects.create(attempt=world.run().attempt, step=1, nodes=1, world_size=1)
    export = Export.objects.create(checkpoint=checkpoint, dtype="float32")
    due(Run.objects.get(), 100)
    sent.clear()
    sweep.sweep()
    assert sent == [(dispatch.ADVANCE_JOB, "export", export.pk)]


def test_a_lease_is_taken_by_one(world: World) -> None:
    attempt = world.run().attempt
    with lease.hold(attempt) as first, lease.hold(Attempt.objects.get()) as second:
        assert (first, second) == (True, False)
    with lease.hold(attempt) as again:
        assert again


def test_sooner_wins_when_to_look_again(world: World) -> None:
    attempt = world.run().attempt
    due(attempt.run, 1000)
    assert not lease.due_in(attempt, 50)
    assert not lease.due_in(attempt, 500)
    attempt.refresh_from_db()
    assert attempt.due_at < timezone.now() + timedelta(seconds=51)
    assert lease.due_in(attempt, 0)


def test_a_step_that_raised_is_looked_at_again_before_long(world: World) -> None:
    attempt = world.run().attempt
    with pytest.raises(OperationalError), lease.hold(attempt):
        raise OperationalError("deadlock detected")
    attempt.refresh_from_db()
    assert attempt.lease_until is None
    assert attempt.due_at <= timezone.now() + lease.AGAIN
