"""A small world to ask about: a person, a cluster of two nodes, a model, a data set, runs with a past."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client

from training.spec.events import Event as Line
from webapp.accounts.models import Token
from webapp.datasets.models import Dataset, Version
from webapp.fleet.models import Cluster, Identity, Node
from webapp.runs import actions, journal
from webapp.runs.models import Attempt, Checkpoint, ModelSource, Run, Stream

ROOT = "/api/v1"


@pytest.fixture(autouse=True)
def quiet(settings: Any) -> None:
    """No broker is asked: what is sent on commit would only be a hint."""
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
    settings.REDIS_URL = "redis://127.0.0.1:1/0"


@dataclass
class World:
    user: User
    cluster: Cluster
    nodes: list[Node]
    model: ModelSource
    version: Version

    def body(self, **changes: Any) -> dict[str, Any]:
        names = {"model": "tiny", "dataset": "chat", "cluster": "pair"}
        return {"name": "first", "preset": "tiny", "recipe": {}, **names, "launch": True} | changes

    def run(self, **changes: Any) -> Run:
        order = actions.Order("a run", "tiny", {}, self.model, self.version, self.cluster)
        run = actions.create(order, self.user)
        Run.objects.filter(pk=run.pk).update(**changes)
        run.refresh_from_db()
        return run


@pytest.fixture
def user(db: None) -> User:
    return get_user_model().objects.create(username="ada")  # no password: hashing one is slow


@pytest.fixture
def world(user: User) -> World:
    cluster = Cluster.objects.create(name="pair")
    identity = Identity.objects.create(name="key", public_key="x", sealed_private_key="SEALED")
    nodes = [
        Node.objects.create(
            cluster=cluster, name=f"n{i}", address="10.0.0.1", user="ml", identity=identity,
            host_key="ssh-ed25519 AAAA", python="/usr/bin/python3", scratch="/scratch", processes=1, accelerator=False,
        )
        for i in range(2)
    ]  # fmt: skip
    model = ModelSource.objects.create(name="tiny", location="/models/tiny")
    dataset = Dataset.objects.create(name="chat", owner=user)
    version = Version.objects.create(dataset=dataset, number=1, digest="0" * 64, rows=9, test_rows=1, bytes=900)
    return World(user, cluster, nodes, model, version)


class Caller:
    """Speaks to the API with a token; `last` is the answer. Every answer is strict JSON."""

    def __init__(self, secret: str | None):
        self.client = Client(raise_request_exception=False)
        self.headers = {"Authorization": f"Bearer {secret}"} if secret else {}

    def get(self, path: str, **headers: str) -> HttpResponse:
        return self.client.get(ROOT + path, headers=self.headers | headers)

    def post(self, path: str, body: Any = None, **headers: str) -> HttpResponse:
        raw = "" if body is None else body if isinstance(body, (str, bytes)) else json.dumps(body)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.post(ROOT + path, raw, content_type="application/json", headers=self.headers | named)

    def patch(self, path: str, body: Any) -> HttpResponse:
        raw = json.dumps(body)
        return self.client.patch(ROOT + path, raw, content_type="application/json", headers=self.headers)

    def delete(self, path: str) -> HttpResponse:
        return self.client.delete(ROOT + path, headers=self.headers)

    def upload(self, path: str, fields: dict[str, Any]) -> HttpResponse:
        return self.client.post(ROOT + path, fields, headers=self.headers)


@pytest.fixture
def secret(user: User) -> str:
    return Token.issue(user, "test")[1]


@pytest.fixture
def call(secret: str) -> Caller:
    return Caller(secret)


def strictly(response: HttpResponse) -> Any:
    """Return the body; NaN in it is an error."""

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    return json.loads(response.content, parse_constant=refuse)


def refused(response: HttpResponse, status: int, field: str) -> str:
    """Check the one shape of errors; return the reason given for `field`."""
    assert response.status_code == status, response.content
    body = strictly(response)
    assert set(body) == {"error", "problems"}
    assert body["problems"]
    for problem in body["problems"]:
        assert set(problem) == {"field", "reason", "fix"}
        assert all(isinstance(value, str) and value for value in problem.values())
    found = {problem["field"]: problem["reason"] for problem in body["problems"]}
    assert field in found, found
    return found[field]


Feed = Callable[..., Stream]


@pytest.fixture
def feed(world: World) -> Feed:
    """Return a function that journals lines as a worker would that read them on a node."""

    def add(attempt: Attempt, lines: list[tuple[str, int | None, dict[str, Any]]], source: str = "train@0") -> Stream:
        stream, _ = Stream.objects.get_or_create(
            attempt=attempt, source=source, defaults={"node": world.nodes[0], "path": "/x"}
        )
        first = stream.last_seq + 1
        events = [Line(first + i, 1000.0 + i, kind, step, data) for i, (kind, step, data) in enumerate(lines)]
        journal.record(stream, events, stream.offset + len(lines))
        return stream

    return add


def metrics(*losses: tuple[int, float | str]) -> list[tuple[str, int, dict[str, Any]]]:
    return [("metrics", step, {"loss": loss}) for step, loss in losses]


def checkpoint(attempt: Attempt, step: int) -> Checkpoint:
    made = Checkpoint.objects.create(attempt=attempt, step=step, nodes=2, world_size=2)
    made.completed_at = made.created_at
    made.save()
    return made
