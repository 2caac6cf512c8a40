"""A failing node, real supervisors and the recipe's `limits.restarts`."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.workers.world import Following, World, stored_equals_written
from webapp.fleet.models import Claim, Node
from webapp.runs import actions
from webapp.runs.actions import newest_checkpoint
from webapp.runs.failure import failure
from webapp.runs.models import Attempt, Event, Run
from webapp.runs.queue.wish import Wish
from workers import advance
from workers.end import finish


def impatient(run: Run) -> None:
    """Take a step, and the rest before a restart as over."""
    Attempt.objects.filter(not_before__gt=timezone.now()).update(not_before=timezone.now())
    advance.advance(run.pk)


def test_a_rank_that_fails_is_restarted_as_often_as_allowed(world: World, following: Following) -> None:
    world.behave(fail={"1": 3}, steps=6)
    run = world.run(limits={"restarts": 1})
    world.drive(run, lambda r: r.has_ended or r.attempt.restart)
    assert run.state == "queued"
    advance.advance(run.pk)
    assert run.attempt.placements.count() == 0  # it rests first
    world.drive(run, lambda r: r.has_ended, step=lambda: impatient(run))
    assert (run.state, run.reason, run.attempt.number) == ("failed", "rank_failed", 2)
    assert (run.attempt.restart, run.attempt.resume_from.step) == (1, 2)
    assert [t.new for t in run.transitions.filter(actor="Shardboard")] == ["queued"]
    assert world.supervisors() == []
    assert not Claim.objects.exists()
    stored_equals_written(run)


def test_what_has_mended_meanwhile_succeeds(world: World, following: Following) -> None:
    world.behave(fail={"1": 3}, steps=4)
    run = world.run(limits={"restarts": 3})
    world.drive(run, lambda r: r.has_ended or r.attempt.restart)
    world.behave(steps=4)
    world.drive(run, lambda r: r.has_ended, step=lambda: impatient(run))
    assert (run.state, run.step, run.attempt.restart) == ("succeeded", 4, 1)
    trained = Event.objects.filter(run=run, kind="metrics", attempt=run.attempt).values_list("step", flat=True)
    assert sorted(trained) == [3, 4]


def test_a_spare_takes_the_place_of_the_node_that_failed(world: World, following: Following) -> None:
    """On shared storage what the failed node wrote is there without it, even when it is away by then."""
    spare = world.add()
    Node.objects.update(scratch=world.nodes[0].scratch)
    world.behave(fail={"1": 7}, steps=100_000, pace=0.02)
    order = actions.Order(
        "r", "tiny", {"limits": {"restarts": 1, "spare": True}}, world.model, world.version, world.cluster,
        Wish(nodes=2),
    )  # fmt: skip
    run = actions.create(order, world.user)
    actions.launch(run, "ada")
    world.drive(run, lambda r: r.has_ended or r.attempt.restart)
    assert run.attempt.resume_from is not None
    world.behave(steps=run.attempt.resume_from.step + 2)
    world.hosts[1].stop()
    world.drive(run, lambda r: r.has_ended, step=lambda: impatient(run))
    assert (run.state, run.attempt.number) == ("succeeded", 2), run.reason_text
    taken = run.attempt.placements.order_by("rank").values_list("node__name", flat=True)
    assert list(taken) == ["n0", spare.name]
    told = failure(run)
    assert told is not None
    assert told.done.endswith("on n0, n2; without n1, which had failed.")


def test_a_full_disk_is_left_to_a_person(world: World, following: Following) -> None:
    world.behave(fail={"0": 1}, reason="disk_full")
    run = world.drive(world.run(limits={"restarts": 3}), lambda r: r.has_ended)
    assert (run.state, run.reason, run.attempts.count()) == ("failed", "disk_full", 1)


def test_what_is_left_on_a_node_that_was_away_is_ended_before_the_next_attempt(
    world: World, following: Following, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finish, "PATIENCE", timedelta(seconds=1))
    world.behave(fail={"0": 40}, steps=100_000, pace=0.05)
    # what a restart goes on from has to be known before the node is away
    run = world.drive(world.run(limits={"restarts": 1}), lambda r: newest_checkpoint(r) is not None)
    first = run.attempt
    world.hosts[1].stop()
    world.drive(run, lambda r: r.has_ended or r.attempt.restart)
    assert list(finish.unproven()) == [first]
    assert world.supervisors() != []  # on the node that is away
    world.behave(steps=run.attempt.resume_from.step + 2)
    world.hosts[1].start()
    world.drive(run, lambda r: r.has_ended, step=lambda: impatient(run))
    assert (run.state, run.attempt.restart) == ("succeeded", 1)
    assert not finish.unproven().exists()
    assert world.supervisors() == []
