"""GET /healthz, at the root and in the API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from webapp.runs import heartbeat

from .conftest import strictly

pytestmark = pytest.mark.django_db
BOTH = ("/healthz", "/api/v1/healthz")


@pytest.fixture(autouse=True)
def fresh_client() -> Iterator[None]:
    """The heartbeat keeps one connection for the life of its process; here Redis changes from test to test."""
    heartbeat._redis.cache_clear()
    yield
    heartbeat._redis.cache_clear()


@pytest.fixture
def redis(settings: Any, redis_url: str) -> str:
    settings.REDIS_URL = redis_url
    heartbeat._redis().flushdb()
    return redis_url


@pytest.mark.parametrize("path", BOTH)
def test_it_is_well_once_all_parts_live(redis: str, path: str) -> None:
    for part in heartbeat.PARTS:
        heartbeat.beat(part)
    answer = Client().get(path)
    assert (answer.status_code, strictly(answer)) == (200, {"ok": True, "missing": []})


@pytest.mark.parametrize("path", BOTH)
def test_it_says_which_part_is_missing(redis: str, path: str) -> None:
    heartbeat.beat("follower")
    answer = Client().get(path)
    assert (answer.status_code, strictly(answer)) == (503, {"ok": False, "missing": ["worker"]})


@pytest.mark.parametrize("path", BOTH)
def test_without_redis_nothing_is_known_of_the_workers(path: str) -> None:
    answer = Client().get(path)
    assert (answer.status_code, strictly(answer)["missing"]) == (503, ["redis", *heartbeat.PARTS])
