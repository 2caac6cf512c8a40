"""The channel layer as in use, on a Redis of the tests' own; rows in a database that threads share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from tests.webapp.rows import Feed, World, make_world
from webapp.runs.sharing import BATCHES


@pytest.fixture(autouse=True)
def layer(settings: Any, redis_url: str, tmp_path: Path) -> Iterator[None]:
    settings.CHANNEL_LAYERS = {
        "default": {"BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer", "CONFIG": {"hosts": [redis_url]}}
    }
    settings.REDIS_URL = redis_url
    settings.DATASETS_DIR = tmp_path / "datasets"
    yield
    BATCHES.close()


@pytest.fixture
def world(transactional_db: None, tmp_path: Path) -> World:
    return make_world(tmp_path)


@pytest.fixture
async def feed(world: World) -> Feed:
    found: Feed = await sync_to_async(world.running)()
    await found.run.arefresh_from_db()
    return found
