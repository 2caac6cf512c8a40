"""The queue's page and what people do to it: pause, priorities, moves. The rule itself: tests/runs/test_queue_plan."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from training.spec.lint import Refused
from webapp.fleet.models import Claim, Cluster, Node
from webapp.runs import actions
from webapp.runs.models import Pause, Run
from webapp.runs.queue.board import waiting_runs
from webapp.runs.queue.waiting import waiting
from webapp.runs.queue.wish import Wish
from webapp.runs.states import RunState

from .rows import HOSTILE, World


def launched(world: World, name: str = "a run", **order: object) -> Run:
    run = actions.create(replace(world.order(name), **order), world.user)  # type: ignore[arg-type]
    actions.launch(run, "ada")
    return run


def text_of(run: Run) -> str:
    told = waiting(Run.objects.get(pk=run.pk))
    assert told is not None
    return told.text


def test_the_page_says_what_waits_for_what_and_what_is_free(page: Client, world: World) -> None:
    assert "Nothing waits here" in page.get("/queue/").content.decode()
    first = world.running("first")
    Claim.objects.create(node=world.nodes[0], attempt=first.run.attempt)
    Node.objects.filter(name="beta").update(in_service=False, drained_by="ada", drained_why=HOSTILE)
    run = launched(world, HOSTILE, wish=Wish(1, 1))
    text = page.get("/queue/board").content.decode()
    assert "1 waiting · 0 of 2 ranks free" in text
    assert f"Waits for 1 rank on 1 node: alpha held by run {first.run.pk} (" in text
    assert f'<a href="/runs/{first.run.pk}/">#{first.run.pk}</a>' in text
    assert "is drained by ada" in text
    assert f'href="/runs/{run.pk}/move"' in text
    assert "<img src=x" not in text
    Node.objects.update(in_service=True)
    large = launched(world, "large", wish=Wish(2), priority=1)
    assert f"0: free, kept for run #{large.pk}" in page.get("/queue/board").content.decode()


def test_who_can_start_is_called_when_gpus_come_free_and_nobody_else(
    world: World, monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    feed = world.running()
    Claim.objects.create(node=world.nodes[0], attempt=feed.run.attempt)
    _, small = launched(world, "large"), launched(world, "small", wish=Wish(1, 1), priority=1)
    sent: list[object] = []
    monkeypatch.setattr("webapp.dispatch.send", lambda *message: sent.append(message))
    with django_capture_on_commit_callbacks(execute=True):
        feed.end(RunState.FAILED)
    assert sent == [("workers.advance_run", small.pk)]


def test_a_paused_queue_starts_nobody_and_says_who_paused_it_and_why(page: Client, world: World) -> None:
    run = launched(world)
    assert (
        page.post("/queue/pause", {"cluster": "", "why": " "}, follow=True).content.decode().count("why: it is empty")
    )
    page.post("/queue/pause", {"cluster": str(world.cluster.pk), "why": "new switch"})
    assert text_of(run) == "waits: the queue of pair is paused by ada, just now: new switch"
    with pytest.raises(Refused, match="paused by ada: new switch"):
        actions.pause(world.cluster, world.user, "again")
    actions.pause(None, world.user, "everything")
    actions.unpause(world.cluster, world.user)
    assert text_of(run).startswith("waits: the queue of all clusters is paused")
    assert "as all queues are" in page.get("/queue/").content.decode()
    page.post("/queue/go-on", {"cluster": ""})
    assert text_of(run).startswith("starts now")
    assert list(Pause.objects.values_list("ended_by", flat=True)) == ["ada", "ada"]
    assert "new switch" in page.get("/queue/").content.decode()


def test_a_higher_priority_goes_first_and_only_staff_gives_it(world: World) -> None:
    eve = User.objects.create(username="eve")
    first, second, third = (launched(world, name) for name in ("first", "second", "third"))
    Run.objects.filter(pk=second.pk).update(owner=eve)
    for value, match in ((1, "only staff may raise"), (101, "-100 to 100")):
        with pytest.raises(Refused, match=match):
            actions.prioritise(second, value, eve)
    with pytest.raises(Refused, match="somebody else's"):
        actions.prioritise(first, -1, eve)
    with pytest.raises(Refused, match="only staff may raise"):
        actions.create(replace(world.order(), priority=5), eve)
    actions.prioritise(second, -1, eve)
    actions.prioritise(third, 50, world.user)
    assert [run.name for run in waiting_runs(world.cluster.pk)] == ["third", "first", "second"]
    assert actions.clone(Run.objects.get(pk=third.pk), world.user).priority == 0
    told = Run.objects.get(pk=third.pk).events.get(kind="queue")
    assert told.data == {"text": "priority 0 is now 50", "actor": "ada"}


def test_a_run_is_moved_to_another_cluster_and_to_other_nodes(page: Client, world: World) -> None:
    other = Cluster.objects.create(name="other")
    Node.objects.filter(name="beta").update(cluster=other)
    run = launched(world, wish=Wish(1))
    asked = {"cluster": str(other.pk), "nodes": "1", "gpus_per_node": "1", "on_nodes": "alpha", "priority": "7"}
    refused = page.post(f"/runs/{run.pk}/move", asked)
    assert (refused.status_code, [p.field for p in refused.context["problems"]]) == (422, ["on_nodes"])
    assert 'value="alpha"' in refused.content.decode()  # nothing that was typed is lost
    page.post(f"/runs/{run.pk}/move", asked | {"on_nodes": "beta"})
    run.refresh_from_db()
    assert (run.cluster, run.priority, run.wished()) == (other, 7, Wish(1, 1, on_nodes=("beta",)))
    assert text_of(run) == "starts now: its nodes are free"
    assert "moved from pair to other" in page.get(f"/runs/{run.pk}/part/history").content.decode()


def test_a_cluster_to_choose_has_the_nodes_that_are_there(page: Client, world: World) -> None:
    run = world.draft()
    Node.objects.filter(name="beta").update(removed_at=timezone.now(), in_service=False)
    for address in ("/runs/new/", f"/runs/{run.pk}/move"):
        assert "pair (1 node)" in page.get(address).content.decode()


def test_a_run_on_its_nodes_is_not_moved_but_stopped_moved_and_resumed(page: Client, world: World) -> None:
    feed = world.running()
    feed.checkpoint(4)
    other = Cluster.objects.create(name="other")
    Node.objects.filter(name="beta").update(cluster=other)
    with pytest.raises(Refused, match="Stop it, move it, then resume it"):
        actions.move(feed.run, other, Wish(), world.user)
    assert "Stop it, move it, then resume it" in page.get(f"/runs/{feed.run.pk}/move").content.decode()
    feed.end(RunState.STOPPING)
    assert "wait until it has stopped" in page.get(f"/runs/{feed.run.pk}/move").content.decode()
    with pytest.raises(Refused, match="Wait until it has stopped"):
        actions.move(feed.run, other, Wish(), world.user)
    feed.end(RunState.STOPPED)
    actions.move(feed.run, other, Wish(), world.user)
    actions.resume(Run.objects.get(pk=feed.run.pk), "ada")  # alpha, of the cluster that it left, has shards of it
    assert text_of(feed.run) == "starts now: its nodes are free"
