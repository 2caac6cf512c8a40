"""A node that is away for too long is lost; one that is away while training goes on is not."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from tests.runs.test_journal import attempt  # noqa: F401  a small world of rows
from tests.workers.test_watch import impatient  # noqa: F401
from tests.workers.world import Following, World
from training.spec.events import Kind
from webapp.fleet.models import Identity, Node
from webapp.runs import journal
from webapp.runs.models import Attempt, Event, Placement
from workers import advance
from workers.end import finish, lost


def ago(seconds: float) -> object:
    return timezone.now() - timedelta(seconds=seconds)


@pytest.fixture
def pair(attempt: Attempt) -> Attempt:  # noqa: F811
    """Two nodes, of which the second has been away for 1,000 s, more than the 900 that are borne."""
    attempt.placements.all().delete()
    identity = Identity.objects.get()
    for rank, away in enumerate((None, ago(1000))):
        node = Node.objects.create(
            cluster=attempt.run.cluster, name=f"p{rank}", address="::1", scratch="/s", identity=identity
        )
        Placement.objects.create(
            attempt=attempt, node=node, rank=rank, slot={"name": node.name}, started_at=ago(5000),
            unreachable_since=away,
        )  # fmt: skip
    return attempt


def ends(pair: Attempt) -> list[str]:
    lost.give_up(pair)
    return [p.exit["reason"] if p.exit else "" for p in pair.placements.order_by("rank")]


@pytest.mark.django_db
def test_a_node_that_is_away_for_too_long_is_lost(pair: Attempt) -> None:
    assert ends(pair) == ["", "node_lost"]


@pytest.mark.django_db
def test_not_while_steps_are_told_of(pair: Attempt) -> None:
    journal.note(pair, Kind.METRICS, {"loss": 1.0}, source="train@0")
    assert ends(pair) == ["", ""]
    Event.objects.update(received_at=ago(901))
    assert ends(pair) == ["", "node_lost"]


@pytest.mark.django_db
def test_not_so_soon_where_every_node_is_away(pair: Attempt) -> None:
    pair.placements.update(unreachable_since=ago(1000))
    assert ends(pair) == ["", ""]
    pair.placements.update(unreachable_since=ago(6000))
    assert ends(pair) == ["node_lost", "node_lost"]


def test_a_lost_node_ends_the_others_and_is_cleared_when_it_comes_back(
    world: World,
    following: Following,
    impatient: None,  # noqa: F811
) -> None:
    world.behave(steps=100, pace=1000)
    run = world.to(world.run(), "running")
    world.hosts[1].stop()
    world.drive(run, lambda _: Placement.objects.get(rank=1).unreachable_since is not None)
    Event.objects.filter(source="node@1").update(received_at=ago(3600))
    world.drive(run, lambda r: r.has_ended)
    assert (run.state, run.reason) == ("failed", "node_lost")
    assert run.attempt.failure["node"] == "n1"
    assert run.attempt.failure["dragged"] == [0]
    left = [Path(f"/proc/{pid}/cmdline").read_text() for pid in world.supervisors()]
    assert left
    assert not any("/n0/" in words for words in left)
    world.hosts[1].start()
    while finish.unproven().exists():
        advance.advance(run.pk)
    assert world.supervisors() == []
    assert Placement.objects.get(rank=1).exit["reason"] == "node_lost"
