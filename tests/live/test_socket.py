"""The socket of a run page, through the whole application and a real Redis."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.sessions.models import Session
from django.test import Client

from tests.webapp.rows import Feed, World
from webapp.asgi import application
from webapp.runs import consumers

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
    """Return the next batch as strict JSON; heartbeats are passed over."""
    while True:
        text = await visitor.text()
        found: dict[str, Any] = json.loads(text, parse_constant=pytest.fail)
        if "cursor" in found:
            return found


@pytest.fixture
async def feed(world: World) -> Feed:
    found: Feed = await in_thread(world.running)()
    await found.run.arefresh_from_db()
    return found


async def test_it_replays_from_the_cursor(world: World, feed: Feed) -> None:
    start = feed.run.journal
    await in_thread(feed.metrics)(3.0, 2.0, 1.0)
    async with opened(world, feed.run.pk) as page:
        await page.send({"after": start + 1})
        found = await batch(page)
    assert found["points"] == {"loss": [[2.0, 2.0], [3.0, 1.0]]}
    assert found["cursor"] == start + 3


async def test_a_nudge_brings_a_batch(world: World, feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "LOOK_ANYWAY", 3600)
    async with opened(world, feed.run.pk) as page:
        await page.send({"after": 0})
        first = await batch(page)
        assert first["cursor"] == feed.run.journal
        await in_thread(feed.metrics)(2.5)
        found = await batch(page)
    assert found["points"] == {"loss": [[1.0, 2.5]]}


async def test_it_looks_without_a_nudge(world: World, feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "LOOK_ANYWAY", 0.05)
    monkeypatch.setattr("webapp.runs.journal.nudge_on_commit", lambda run_id: None)
    async with opened(world, feed.run.pk) as page:
        await page.send({"after": feed.run.journal})
        heartbeat = json.loads(await page.text())
        assert set(heartbeat) == {"now"}
        await in_thread(feed.metrics)(2.5)
        assert (await batch(page))["points"] == {"loss": [[1.0, 2.5]]}


async def test_values_that_are_not_finite_are_strict_json(world: World, feed: Feed) -> None:
    await in_thread(feed.metrics)(1.2, math.nan, math.inf, -math.inf)
    async with opened(world, feed.run.pk) as page:
        await page.send({"after": feed.run.journal})
        found = await batch(page)
    assert [y for _, y in found["points"]["loss"]] == [1.2, "NaN", "Infinity", "-Infinity"]


async def test_a_burst_is_drawn_whole(world: World, feed: Feed) -> None:
    """More lines than one batch holds, written while the page is being sent to."""
    async with opened(world, feed.run.pk) as page:
        await page.send({"after": feed.run.journal})
        for first in range(0, 1200, 100):
            await in_thread(feed.metrics)(*(float(i) for i in range(100)), after=first)
        drawn: list[float] = []
        while len(drawn) < 1200:
            drawn += [x for x, _ in (await batch(page))["points"]["loss"]]
    assert drawn == [float(x) for x in range(1, 1201)]


async def test_it_refuses_who_is_not_logged_in(feed: Feed) -> None:
    assert await socket(feed.run.pk, HERE).connect() == (False, consumers.NOT_LOGGED_IN)


async def test_it_refuses_a_foreign_page_and_says_so(
    world: World, feed: Feed, caplog: pytest.LogCaptureFixture
) -> None:
    foreign = (b"origin", b"https://evil.example")
    with caplog.at_level(logging.WARNING, "webapp.security"):
        accepted, _ = await socket(feed.run.pk, foreign, await cookie(world)).connect()
    assert not accepted
    assert "https://evil.example" in caplog.text


async def test_it_refuses_a_page_without_an_origin(world: World, feed: Feed) -> None:
    accepted, _ = await socket(feed.run.pk, await cookie(world)).connect()
    assert not accepted


async def test_it_refuses_an_unknown_run(world: World) -> None:
    assert await socket(99, HERE, await cookie(world)).connect() == (False, consumers.UNKNOWN_RUN)


@pytest.mark.parametrize("path", ["/ws/nope", "/", "/ws/runs/1/x"])
async def test_it_refuses_an_address_that_is_none(world: World, path: str) -> None:
    visitor = Visitor(application, path, [HERE, await cookie(world)])
    assert await visitor.connect() == (False, consumers.UNKNOWN_RUN)


async def test_it_ends_with_its_session(world: World, feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "BELIEVED_SECONDS", 0.0)
    monkeypatch.setattr(consumers, "LOOK_ANYWAY", 3600)
    async with opened(world, feed.run.pk) as page:
        await page.send({"after": 0})
        await batch(page)
        await Session.objects.all().adelete()  # as a logout does
        await in_thread(feed.metrics)(2.5)
        assert await page.closed() == consumers.NOT_LOGGED_IN


async def test_it_rejects_bytes(world: World, feed: Feed) -> None:
    async with opened(world, feed.run.pk) as page:
        await page.send_input({"type": "websocket.receive", "bytes": b"\xff"})
        assert await page.closed() == consumers.BAD_MESSAGE


@pytest.mark.parametrize(
    "message",
    [
        "{}", "[]", "nonsense", '{"after": -1}', '{"after": true}', '{"after": "1"}',
        '{"after": 9223372036854775808}', "[" * 100_000,
    ],
)  # fmt: skip
async def test_it_rejects_a_bad_message(world: World, feed: Feed, message: str) -> None:
    async with opened(world, feed.run.pk) as page:
        await page.send_text(message)
        assert await page.closed() == consumers.BAD_MESSAGE


async def test_without_redis_it_closes_cleanly(world: World, feed: Feed, settings: Any) -> None:
    layer = settings.CHANNEL_LAYERS["default"]
    settings.CHANNEL_LAYERS = {"default": layer | {"CONFIG": {"hosts": ["redis://127.0.0.1:1"]}}}
    visitor = socket(feed.run.pk, HERE, await cookie(world))
    assert await visitor.connect() == (False, consumers.TRY_AGAIN)


async def test_the_poll_answers_the_same_batch(world: World, feed: Feed) -> None:
    await in_thread(feed.metrics)(2.0)
    client: Callable[..., Awaitable[Any]] = in_thread(Client().get)
    assert (await client(f"/runs/{feed.run.pk}/live?after=0")).status_code == 302
    known = Client()
    await known.aforce_login(world.user)
    answer = await in_thread(known.get)(f"/runs/{feed.run.pk}/live?after={feed.run.journal}")
    async with opened(world, feed.run.pk) as page:
        await page.send({"after": feed.run.journal})
        assert await batch(page) == answer.json()
    refused = await in_thread(known.get)(f"/runs/{feed.run.pk}/live?after=-1")
    assert refused.status_code == 400
