"""Who is woken by nudges, over a real Redis."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from redis.exceptions import RedisError

from tests.webapp.rows import Feed, World
from webapp.runs import consumers
from webapp.runs.nudge import nudge
from webapp.runs.waking import pages

from .pages import opened


async def test_a_page_is_woken_for_its_own_run() -> None:
    heard: asyncio.Queue[tuple[int, bool]] = asyncio.Queue()
    with pages().woken(1, lambda hurried: heard.put_nowait((1, hurried))):
        with pages().woken(2, lambda hurried: heard.put_nowait((2, hurried))):
            await pages().hear()
            await sync_to_async(nudge)([1, 3], calm=[1, 2])
            assert [await heard.get() for _ in range(2)] == [(1, True), (2, False)]
        await sync_to_async(nudge)([2])
        await sync_to_async(nudge)([1])
        assert await heard.get() == (1, True), "whoever has left is woken no more"


async def test_after_a_failure_the_next_page_subscribes_anew(settings: Any) -> None:
    layer = settings.CHANNEL_LAYERS["default"]
    settings.CHANNEL_LAYERS = {"default": layer | {"CONFIG": {"hosts": ["redis://127.0.0.1:1"]}}}
    with pytest.raises((RedisError, OSError)):
        await pages().hear()
    settings.CHANNEL_LAYERS = {"default": layer}
    heard = asyncio.Event()
    with pages().woken(1, lambda _: heard.set()):
        await pages().hear()
        await sync_to_async(nudge)([1])
        await heard.wait()


async def test_an_open_page_finds_out_that_nobody_listens(
    world: World, feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "LOOK_ANYWAY", 0.05)
    async with opened(world, feed.run.pk) as page:
        await page.send({"after": feed.run.journal})
        await page.text()
        before = pages()._subscribed
        assert before is not None
        (await before).cancel()
        for _ in range(200):  # heartbeats
            await page.text()
            if pages()._subscribed is not before:
                break
        assert pages()._subscribed is not before
