"""Two nodes with private disks behind real SSH servers, and a service that trains on them, without a broker."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User

from tests.sshd import Sshd
from webapp.datasets.models import Dataset, Version
from webapp.fleet.models import Cluster, Identity, Node
from webapp.fleet.ssh import make_identity, pool
from webapp.runs import actions
from webapp.runs.models import Event, ModelSource, Placement, Run, Stream
from workers import advance
from workers.follow.follower import Follower

ROOT = Path(__file__).resolve().parents[2]
RANKS, PLANS, DRIVEN = (ROOT / "tests" / "workers" / name for name in ("ranks.py", "plans.py", "driven.py"))
GENEROUS = 400.0
# Commands that only ask a node something, and end by themselves.
ASKING = ("status", "orphans", "preflight", "reach", "free-port", "follow")
# A node's interpreter: the real one, but that the launcher starts the ranks of tests/workers/ranks.py, which need no
# tokens, that an export is foretold by tests/workers/plans.py, and that a status finds the GPUs of
# tests/workers/driven.py.
PYTHON = """#!/bin/sh
case "$2 $3" in "training tokenise") shift 4; exec "$@" ;; esac
case "$2 $3" in "training plan-export") exec {python} {plans} ;; esac
case "$2 $3" in "training status") exec {python} {driven} "$@" ;; esac
case "$2" in accelerate.commands.launch) exec {python} {ranks} "$@" ;; esac
exec {python} "$@"
"""


@dataclass
class World:
    folder: Path
    datasets: Path
    nodes: list[Node] = field(default_factory=list)
    hosts: list[Sshd] = field(default_factory=list)

    def build(self, count: int = 2) -> World:
        # One that is back is asked at once: no pauses between tries to connect.
        self.connections = pool.Pool(clock=lambda: time.monotonic() * 1e6)
        self.own_connections, pool._current = pool._current, self.connections
        pair = make_identity()
        self.identity = Identity(name="key", public_key=pair.public)
        self.identity.private_key = pair.private
        self.identity.save()
        self.cluster = Cluster.objects.create(name="pair")
        python = self.folder / "python"
        python.write_text(PYTHON.format(python=sys.executable, ranks=RANKS, plans=PLANS, driven=DRIVEN))
        python.chmod(0o755)
        for _ in range(count):
            self.add()
        self.user = User.objects.create(username="ada")
        (self.folder / "model").mkdir()
        self.model = ModelSource.objects.create(name="m", location=str(self.folder / "model"))
        self.version = self._version()
        return self

    def add(self) -> Node:
        """Add a node to the cluster."""
        number = len(self.nodes)
        self.hosts.append(Sshd(self.identity.public_key))
        (self.folder / f"n{number}").mkdir()
        self.nodes.append(self._node(number, str(self.folder / "python")))
        return self.nodes[-1]

    def _node(self, number: int, python: str) -> Node:
        host = self.hosts[number]
        return Node.objects.create(
            cluster=self.cluster, name=f"n{number}", address=host.address, port=host.port, user="me",
            identity=self.identity, host_key=host.host_key, python=python, scratch=str(self.folder / f"n{number}"),
            processes=1, accelerator=False,
        )  # fmt: skip

    def _version(self) -> Version:
        folder = self.datasets / ("d" * 64)
        folder.mkdir(parents=True)
        (folder / "train.jsonl").write_text('{"messages": []}\n')
        dataset = Dataset.objects.create(name="d", owner=self.user)
        return Version.objects.create(dataset=dataset, number=1, digest="d" * 64, rows=1, bytes=17)

    def behave(self, **how: Any) -> None:
        for node in self.nodes:
            (Path(node.scratch) / "behave.json").write_text(json.dumps(how))

    def run(self, **overrides: Any) -> Run:
        order = actions.Order("a run", "tiny", overrides, self.model, self.version, self.cluster)
        run = actions.create(order, self.user)
        actions.launch(run, "ada")
        return run

    def drive(self, run: Run, until: Callable[[Run], Any], *, step: Callable[[], None] | None = None) -> Run:
        """Advance `run` until the condition holds."""
        limit = time.monotonic() + GENEROUS
        while True:
            (step or (lambda: advance.advance(run.pk)))()
            run.refresh_from_db()
            if until(run):
                return run
            assert time.monotonic() < limit, f"{run} is still {run.state}: {run.reason_text}"
            time.sleep(0.05)

    def to(self, run: Run, *states: str) -> Run:
        self.drive(run, lambda r: r.state in states or r.has_ended)
        assert run.state in states, f"{run.state} ({run.reason}): {run.reason_text}"
        return run

    def starts(self) -> list[str]:
        """Return the commands by which jobs were started."""
        return [command for host in self.hosts for command in host.commands if " training start " in command]

    def supervisors(self) -> list[int]:
        """Return the living processes of jobs below our folder; not those that only ask after one."""
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_bytes().decode("utf-8", "replace").split("\0")
            except OSError:
                continue
            command = words[words.index("training") + 1] if "training" in words[:-1] else ""
            if command not in ("", *ASKING) and any(word.startswith(f"{self.folder}/n") for word in words):
                found.append(int(path.parent.name))
        return found

    def finish(self) -> None:
        for pid in self.supervisors():  # of a test that failed
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        pool._current = self.own_connections
        self.connections.close()
        for host in self.hosts:
            host.finish()


class Following:
    """The real follower in a thread of its own."""

    def __enter__(self) -> Following:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def _run(self) -> None:
        self._task = self._loop.create_task(Follower().run())
        try:
            self._loop.run_until_complete(self._task)
        except asyncio.CancelledError:
            pass
        finally:
            self._loop.close()

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(GENEROUS)


def stored_equals_written(run: Run) -> None:
    """Assert that every line on the nodes is an event, once."""
    streams = Stream.objects.filter(attempt__run=run)
    assert streams
    for stream in streams:
        content = Path(stream.path).read_bytes() if Path(stream.path).exists() else b""
        events = Event.objects.filter(attempt=stream.attempt, source=stream.source)
        if not stream.source.startswith(("log@", "exportlog@")):
            assert events.count() == content.count(b"\n"), stream
        assert stream.offset == len(content), stream
        assert stream.closed_at is not None, stream
    numbers = list(Event.objects.filter(run=run).order_by("number").values_list("number", flat=True))
    assert numbers == list(range(1, len(numbers) + 1))


def exits(run: Run) -> list[str]:
    rows = Placement.objects.filter(attempt=run.attempt).order_by("rank")
    return [row.exit["reason"] if row.exit else "" for row in rows]
