"""Runs that share nodes: each GPU has one run, also with two workers at once; two on one node train side by side."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import QuerySet
from django.utils import timezone

from tests.workers.world import Following, World, stored_equals_written
from webapp.fleet.models import Claim, Cluster, Node
from webapp.runs import actions
from webapp.runs.actions import begin
from webapp.runs.models import Attempt, Placement, Run
from webapp.runs.queue.waiting import waiting
from webapp.runs.queue.wish import Wish
from workers import advance, lease
from workers.launch import ports
from workers.launch.claim import claim


def asks(world: World, nodes: int | None, gpus: int | None, name: str = "a run") -> Run:
    order = actions.Order(name, "tiny", {}, world.model, world.version, world.cluster, Wish(nodes, gpus))
    run = actions.create(order, world.user)
    actions.launch(run, "ada")
    return run


def test_two_runs_on_one_node_train_at_once(world: World, following: Following) -> None:
    world.behave(steps=1000, pace=0.1)
    Node.objects.update(processes=2)
    Node.objects.filter(name="n1").update(in_service=False)
    first, second, third = (asks(world, 1, 1) for _ in range(3))
    for run in (first, second):
        world.to(run, "running")
    advance.advance(third.pk)
    assert {(c.gpu, c.attempt.run_id) for c in Claim.objects.all()} == {(0, first.pk), (1, second.pk)}
    slots = [placement.slot for placement in Placement.objects.order_by("pk")]
    assert [(slot["name"], slot["processes"], slot["gpus"]) for slot in slots] == [("n0", 1, [0]), ("n0", 1, [1])]
    assert first.attempt.port != second.attempt.port
    assert not ports.keep(second.attempt, first.attempt.port)
    told = waiting(Run.objects.get(pk=third.pk))
    assert told is not None
    assert told.runs == (first.pk, second.pk)
    assert told.text.startswith("waits for 1 rank on 1 node: n0 held by run ")
    for run in (first, second):
        actions.stop(run, "ada")
        world.to(run, "stopped")
        stored_equals_written(run)
    advance.advance(third.pk)
    assert {claim.attempt.run_id for claim in Claim.objects.all()} == {third.pk}


def test_workers_that_race_for_the_last_gpus_give_each_to_one_run(world: World) -> None:
    Node.objects.update(processes=2)
    runs = [asks(world, 2, 1, f"run {n}") for n in range(4)]
    twice = [run.pk for run in runs for _ in range(2)]  # each message is delivered twice, too
    ready, errors = threading.Barrier(len(twice)), []

    def deliver(run: int) -> None:
        try:
            ready.wait(60)
            advance.advance(run)
        except Exception as error:  # noqa: BLE001  the test shows it
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=deliver, args=(run,)) for run in twice]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    for run in runs:  # whoever lost the race looks again
        advance.advance(run.pk) if Run.objects.get(pk=run.pk).state == "queued" else None
    states = list(Run.objects.order_by("pk").values_list("state", flat=True))
    assert [state == "queued" for state in states] == [False, False, True, True]
    assert Claim.objects.count() == 4
    for attempt in Attempt.objects.filter(claims__isnull=False).distinct():
        assert sorted(attempt.placements.values_list("node__name", flat=True)) == ["n0", "n1"]
        assert attempt.claims.count() == 2


def test_a_look_for_an_attempt_that_is_over_takes_nothing_for_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    run = asks(world, 2, None)
    old, hold = run.attempt, lease.hold

    def begun_again(row: lease.Row) -> Any:  # after the attempt was read, before its lease is taken
        actions.stop(run, "ada")
        run.refresh_from_db()
        with transaction.atomic():
            begin._queue(run, "ada", "resumed")
        return hold(row)

    with monkeypatch.context() as patched:
        patched.setattr(lease, "hold", begun_again)
        advance.advance(run.pk)
    run.refresh_from_db()
    claim(run, old)  # or even after that
    run.refresh_from_db()
    assert run.state == "queued"
    assert not Claim.objects.exists()
    advance.advance(run.pk)
    assert {found.attempt_id for found in Claim.objects.all()} == {run.attempt.pk}


def test_who_places_a_run_lets_others_refer_to_its_nodes(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    run = asks(world, 2, None)
    before, locks = QuerySet.select_for_update, []

    def locked(self: QuerySet[Any], *args: Any, **more: Any) -> QuerySet[Any]:
        locks.append((self.model, more.get("no_key", False)))
        return before(self, *args, **more)

    monkeypatch.setattr(QuerySet, "select_for_update", locked)
    claim(run, run.attempt)
    assert ports.keep(run.attempt, 20_000)
    assert {lock for lock in locks if lock[0] in (Cluster, Node)} == {(Cluster, True), (Node, True)}


@pytest.mark.parametrize("how", [{"in_service": False}, {"removed_at": timezone.now()}, {}])
def test_a_node_that_goes_a_moment_before_it_is_taken_stays_free(
    world: World, monkeypatch: pytest.MonkeyPatch, how: dict[str, Any]
) -> None:
    run, before = asks(world, 1, 1), QuerySet.select_for_update

    def lock(self: QuerySet[Any], *args: Any, **more: Any) -> QuerySet[Any]:
        """Somebody else's change of the node is a moment earlier than our lock; {}: it is deleted."""
        if self.model is Node:
            node = Node.objects.filter(name="n0")
            node.update(**how) if how else node.delete()
        return before(self, *args, **more)

    monkeypatch.setattr(QuerySet, "select_for_update", lock)
    advance.advance(run.pk)
    run.refresh_from_db()
    assert (run.state, Claim.objects.count()) == ("queued", 0)
    advance.advance(run.pk)
    assert [claim.node.name for claim in Claim.objects.all()] == ["n1"]
