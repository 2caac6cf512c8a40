"""A stop leaves nothing running, whenever it comes."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from tests.workers.world import Following, World, exits, stored_equals_written
from webapp.fleet.models import Claim
from webapp.runs import actions
from webapp.runs.models import Attempt, Placement, Run
from workers import advance
from workers.end import finish
from workers.launch import start


def asked_before(run: Run, seconds: float) -> None:
    """Set the clock of the request to stop back."""
    asked = timezone.now() - timedelta(seconds=seconds)
    Attempt.objects.filter(pk=run.attempt.pk).update(stop_requested_at=asked)


def test_it_stops_while_preparing_without_starting_anything(world: World) -> None:
    run = world.drive(world.run(), lambda r: r.state == "preparing")
    actions.stop(run, "ada")
    world.to(run, "stopped")
    assert run.reason == "stopped_unsaved"
    assert not (Path(world.nodes[0].scratch) / "runs").exists()
    assert not Claim.objects.exists()


def test_it_stops_between_the_files_and_the_start(world: World) -> None:
    run = world.drive(world.run(), lambda r: r.state == "starting")
    actions.stop(run, "ada")
    world.to(run, "stopped")
    assert run.reason == "stopped_unsaved"
    assert world.supervisors() == []
    start._start(run.attempt, finish.prepared(run.attempt))  # a start that was on its way comes too late
    assert world.supervisors() == []


def test_it_stops_what_has_started_but_not_begun_to_train(world: World, following: Following) -> None:
    world.behave(steps=1000, pace=0.1)
    run = world.drive(world.run(), lambda r: r.attempt.placements.filter(started_at__isnull=False).count() == 2)
    Attempt.objects.filter(pk=run.attempt.pk).update(world_size=0)
    actions.stop(run, "ada")
    world.to(run, "stopped")
    assert world.supervisors() == []
    stored_equals_written(run)


def test_what_does_not_listen_is_killed_when_the_recipes_time_is_over(world: World, following: Following) -> None:
    world.behave(steps=1000, pace=0.1, deaf=True)
    run = world.to(world.run(limits={"stop_seconds": 900}), "running")
    job = run.attempt.placements.get(rank=0).node.scratch + f"/runs/{run.pk}/1/node0/job.json"
    assert json.loads(Path(job).read_text())["grace_seconds"] == 900
    actions.stop(run, "ada")
    asked_before(run, 800)
    advance.advance(run.pk)
    run.refresh_from_db()
    assert run.state == "stopping"
    assert len(world.supervisors()) >= 2  # a save may still be on its way
    asked_before(run, 901)
    world.to(run, "stopped")
    assert run.reason == "stopped_unsaved"
    assert world.supervisors() == []
    assert all(row.proven_gone_at for row in Placement.objects.all())
    stored_equals_written(run)


def test_a_run_that_finishes_meanwhile_has_succeeded(world: World, following: Following) -> None:
    world.behave(steps=3, pace=0.3)
    run = world.to(world.run(), "running")
    world.drive(run, lambda r: all(exits(r)), step=lambda: None)
    actions.stop(run, "ada")
    world.to(run, "succeeded")
    assert run.reason == "completed"


def test_asked_twice_it_is_the_same_stop(world: World, following: Following) -> None:
    world.behave(steps=1000, pace=0.05)
    run = world.to(world.run(), "running")
    actions.stop(run, "ada")
    actions.stop(run, "bob")
    world.to(run, "stopped")
    assert [t.actor for t in run.transitions.filter(new="stopping")] == ["ada"]


def test_a_node_that_is_away_is_not_called_stopped_and_is_cleared_when_it_returns(
    world: World, following: Following, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finish, "PATIENCE", timedelta(seconds=2))
    world.behave(steps=100000, pace=0.1, deaf=True)
    run = world.to(world.run(), "running")
    world.hosts[1].stop()
    actions.stop(run, "ada")
    asked_before(run, 61)  # the tiny recipe's time to stop
    world.drive(run, lambda r: r.has_ended)
    assert "n1" in run.reason_text
    assert world.supervisors() != []  # on the node that is away
    world.hosts[1].start()
    assert list(finish.unproven()) == [run.attempt]
    advance.advance(run.pk)
    assert world.supervisors() == []
    assert not finish.unproven().exists()
    stored_equals_written(run)
