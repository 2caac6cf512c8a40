"""A site with rows, and a browser's client that is logged in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from training.spec.faults import Reason
from webapp.runs.states import RunState

from .rows import HOSTILE, Feed, World, make_world


@pytest.fixture(autouse=True)
def quiet(settings: Any, tmp_path: Path) -> None:
    """No broker is asked: what is sent on commit would only be a hint. Data sets go to a folder of the test."""
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    settings.DATASETS_DIR = tmp_path / "datasets"


@pytest.fixture
def world(db: None, tmp_path: Path) -> World:
    return make_world(tmp_path)


@pytest.fixture
def page(world: World, client: Client) -> Client:
    client.force_login(world.user)
    return client


@pytest.fixture
def stopped(world: World) -> Feed:
    """A run that has stopped at step 5 of 12, with three checkpoints."""
    feed = world.running(HOSTILE)
    feed.started()
    feed.metrics(3.0, 2.5, 2.0, 1.5, 1.25)
    feed.write("train@0", ("evaluation", 4, {"loss": 1.75}))
    for step in (2, 4, 5):
        feed.checkpoint(step)
    feed.end(RunState.STOPPED, reason=Reason.STOPPED)
    return feed
