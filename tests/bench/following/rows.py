"""The rows of many running runs, each on two nodes; and what has been stored of them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Count, Sum

from tests.e2e.ssh_hosts import SshHost
from webapp.datasets.models import Dataset, Version
from webapp.fleet.models import Cluster, Identity, Node
from webapp.runs import actions, lifecycle
from webapp.runs.models import Event, ModelSource, Run, SampleBlock
from webapp.runs.states import RunState
from workers import group
from workers.follow import streams

ON_THE_WAY = (RunState.PREPARING, RunState.STARTING, RunState.RUNNING)


@dataclass(frozen=True)
class Place:
    """A node as it is reached."""

    address: str
    port: int
    host_key: str
    scratch: str

    @classmethod
    def of(cls, host: SshHost) -> Place:
        return cls(host.address, host.port, host.host_key, "/scratch")


def make(places: Sequence[Place], private_key: str, public_key: str, runs: int) -> list[list[int]]:
    """Make the rows; return for each node the runs whose jobs it has. Node n has rank n % 2."""
    user = User.objects.create(username="bench")
    cluster = Cluster.objects.create(name="bench")
    identity = Identity(name="bench", public_key=public_key)
    identity.private_key = private_key
    identity.save()
    nodes = [
        Node.objects.create(
            cluster=cluster, name=f"n{number}", address=place.address, port=place.port, user="root", identity=identity,
            host_key=place.host_key, python=sys.executable, scratch=place.scratch,
        )
        for number, place in enumerate(places)
    ]  # fmt: skip
    model = ModelSource.objects.create(name="m", location="/m")
    dataset = Dataset.objects.create(name="d", owner=user)
    version = Version.objects.create(dataset=dataset, number=1, digest="0" * 64, rows=9, bytes=900)
    held: list[list[int]] = [[] for _ in nodes]
    for number in range(runs):
        first = 2 * number % len(nodes)
        run = actions.create(actions.Order(f"run {number}", "tiny", {}, model, version, cluster), user)
        _start(run, nodes[first : first + 2])
        for at in (first, first + 1):
            held[at].append(run.pk)
    return held


def _start(run: Run, nodes: Sequence[Node]) -> None:
    attempt = actions.launch(run, "bench")
    actions.place(attempt, nodes)
    for state in ON_THE_WAY:
        assert lifecycle.move(run, state, actor="bench", cause="bench")
    streams.open_for_attempt(attempt, group.of_attempt(attempt))


def stored() -> int:
    """Return how many lines of nodes are stored, as rows or in blocks."""
    lines = Event.objects.filter(source__regex=r"^(train|node|log)@").aggregate(found=Count("pk"))["found"]
    return int(lines + (SampleBlock.objects.aggregate(found=Sum("count"))["found"] or 0))


def past(last: int) -> list[tuple[Any, ...]]:
    """Return (id, written at, kind) of the rows that were stored after the row `last`."""
    rows = Event.objects.filter(pk__gt=last, source__regex=r"^(train|node)@").order_by("pk")
    return list(rows.values_list("pk", "at", "kind"))
