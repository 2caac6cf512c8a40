"""Pages of runs as their sockets see them: opened by somebody who is logged in, sent batches."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings
from django.test import Client

from tests.webapp.rows import World
from webapp.asgi import application

from .visitor import Visitor

HERE = (b"origin", b"http://localhost")

in_thread: Callable[..., Any] = sync_to_async


async def cookie(world: World) -> tuple[bytes, bytes]:
    client = Client()
    await client.aforce_login(world.user)
    return b"cookie", f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}".encode()


def socket(run: int, *headers: tuple[bytes, bytes]) -> Visitor:
    return Visitor(application, f"/ws/runs/{run}/", list(headers))


@asynccontextmanager
async def opened(world: World, run: int) -> AsyncIterator[Visitor]:
    visitor = socket(run, HERE, await cookie(world))
    accepted, _ = await visitor.connect()
    assert accepted
    try:
        yield visitor
    finally:
        await visitor.leave()


async def batch(visitor: Visitor) -> dict[str, Any]:
    """Return the next batch as strict JSON; heartbeats are passed over, as many as come in a minute."""
    for _ in range(12):
        text = await visitor.text()
        found: dict[str, Any] = json.loads(text, parse_constant=pytest.fail)
        if "cursor" in found:
            return found
    pytest.fail("nothing but heartbeats")
