"""Who is alive: each long-lived part sets a key in Redis that expires unless it is set again."""

from __future__ import annotations

from functools import cache

from django.conf import settings
from redis import Redis
from redis.exceptions import RedisError

PARTS = ("worker", "follower")
SECONDS = 30


def beat(name: str) -> bool:
    """Say that `name` lives, for SECONDS; return False where Redis can't be told."""
    try:
        return bool(_redis().set(_key(name), 1, ex=SECONDS))
    except (RedisError, OSError):
        return False


def alive() -> dict[str, bool]:
    """Return {"redis", "worker", "follower"}: True for each that answers or has said so lately."""
    try:
        found = _redis().mget([_key(name) for name in PARTS])
    except (RedisError, OSError):
        return {"redis": False} | dict.fromkeys(PARTS, False)
    return {"redis": True} | {name: value is not None for name, value in zip(PARTS, found, strict=True)}


def _key(name: str) -> str:
    return f"shardboard:alive:{name}"


@cache
def _redis() -> Redis:
    return Redis.from_url(settings.REDIS_URL, socket_connect_timeout=2, socket_timeout=2)
