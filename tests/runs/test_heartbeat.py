"""Who is alive, told by keys that expire."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from webapp.runs import heartbeat


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    heartbeat._redis.cache_clear()
    yield
    heartbeat._redis.cache_clear()


def test_it_shows_who_has_said_so(settings: Any, redis_url: str) -> None:
    settings.REDIS_URL = redis_url
    heartbeat._redis().flushdb()
    assert heartbeat.alive() == {"redis": True, "worker": False, "follower": False}
    assert heartbeat.beat("follower")
    assert heartbeat.alive() == {"redis": True, "worker": False, "follower": True}
    assert 0 < heartbeat._redis().ttl("shardboard:alive:follower") <= heartbeat.SECONDS


def test_without_redis_nobody_is_known_to_live(settings: Any) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    assert not heartbeat.beat("worker")
    assert heartbeat.alive() == {"redis": False, "worker": False, "follower": False}
