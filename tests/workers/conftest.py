"""A world of two nodes for each test; no broker is there, messages are only hints."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.workers.world import Following, World


@pytest.fixture
def no_broker(settings: Any) -> None:
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
    settings.REDIS_URL = "redis://127.0.0.1:1/0"


@pytest.fixture
def world(transactional_db: None, no_broker: None, settings: Any, tmp_path: Path) -> Iterator[World]:
    settings.DATASETS_DIR = tmp_path / "datasets"
    world = World(tmp_path, tmp_path / "datasets").build()
    yield world
    world.finish()


@pytest.fixture
def following(world: World) -> Iterator[Following]:
    with Following() as following:
        yield following
