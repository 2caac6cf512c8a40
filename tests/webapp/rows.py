"""Rows for tests of pages: a cluster of two nodes, a model, a data set, and a run that is fed line by line."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncssh
from django.contrib.auth.models import User

from training.spec.events import Event as Line
from webapp.datasets.ingest import register
from webapp.datasets.models import Version
from webapp.fleet import enrol
from webapp.fleet.models import Cluster, Node
from webapp.runs import actions, journal, lifecycle
from webapp.runs.models import Checkpoint, ModelSource, Run, Stream
from webapp.runs.states import RunState

HOSTILE = "<img src=x onerror=alert(1)>$(touch /tmp/pwned);'\"&amp;"
START = 1_700_000_000.0
ON_THE_WAY = (RunState.PREPARING, RunState.STARTING, RunState.RUNNING)


@dataclass
class World:
    user: User
    cluster: Cluster
    nodes: list[Node]
    model: ModelSource
    version: Version

    def order(self, name: str = "a run", **overrides: Any) -> actions.Order:
        return actions.Order(name, "tiny", overrides, self.model, self.version, self.cluster)

    def draft(self, name: str = "a run", **overrides: Any) -> Run:
        return actions.create(self.order(name, **overrides), self.user)

    def running(self, name: str = "a run", **overrides: Any) -> Feed:
        """Return the feed of a run that has got as far as `running`."""
        run = self.draft(name, **overrides)
        actions.launch(run, self.user.username)
        return self.started(run)

    def started(self, run: Run) -> Feed:
        for state in ON_THE_WAY:
            run.refresh_from_db()
            assert lifecycle.move(run, state, actor="worker", cause="test")
        actions.place(run.attempt, self.nodes)
        return Feed(run, self.nodes)


@dataclass
class Feed:
    """What the nodes of a run's newest attempt write."""

    run: Run
    nodes: list[Node]
    streams: dict[str, Stream] = field(default_factory=dict)

    def write(self, source: str, *lines: tuple[str, int | None, dict[str, Any]]) -> None:
        """Store lines (kind, step, data) of `source`, such as train@0; each a second after the one before."""
        stream = self._stream(source)
        first = stream.last_seq + 1
        made = [Line(first + i, START + first + i, kind, step, data) for i, (kind, step, data) in enumerate(lines)]
        journal.record(stream, made, made[-1].seq)

    def metrics(self, *losses: float, after: int = 0) -> None:
        self.write("train@0", *(("metrics", after + i, {"loss": loss}) for i, loss in enumerate(losses, 1)))

    def started(self, total: int = 12) -> None:
        self.write("train@0", ("started", None, {"world_size": 2, "nodes": 2, "total_steps": total}))

    def checkpoint(self, step: int) -> Checkpoint:
        for rank in range(len(self.nodes)):
            part = {"name": f"checkpoint-{step}", "node_rank": rank, "bytes": 500, "files": 2}
            self.write(f"train@{rank}", ("checkpoint", step, part | {"nodes": 2, "world_size": 2}))
        return Checkpoint.objects.get(attempt=self.run.attempt, step=step)

    def end(self, state: RunState, **why: Any) -> None:
        self.run.refresh_from_db()
        assert lifecycle.move(self.run, state, actor="worker", cause="test", **why)

    def _stream(self, source: str) -> Stream:
        if source not in self.streams:
            node = self.nodes[int(source.partition("@")[2])]
            self.streams[source] = Stream.objects.create(
                attempt=self.run.attempt, node=node, source=source, path=f"/{source}"
            )
        return self.streams[source]


def public_key() -> str:
    return str(asyncssh.generate_private_key("ssh-ed25519").export_public_key("openssh").decode().strip())


def make_world(folder: Path) -> World:
    user = User.objects.create(username="ada", is_staff=True, is_superuser=True)
    identity = enrol.make_identity("loopback")
    nodes = [
        enrol.put_node(
            Node(
                name=name,
                address="127.0.0.1",
                user="ada",
                identity=identity,
                host_key=public_key(),
                python="/usr/bin/python3",
                scratch=f"/scratch/{name}",
                accelerator=False,
            ),
            "pair",
        )
        for name in ("alpha", "beta")
    ]
    model = ModelSource.objects.create(name="tiny", location="/models/tiny")
    train = folder / "train.jsonl"
    turns = [{"role": "user", "content": HOSTILE}, {"role": "assistant", "content": "Yes."}]
    train.write_text("".join(json.dumps({"messages": turns, "number": i}) + "\n" for i in range(5)), "utf-8")
    version = register("chat", train, owner=user).version
    return World(user, Cluster.objects.get(name="pair"), nodes, model, version)
