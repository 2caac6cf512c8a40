"""Batches are read once for all pages that stand at the same event."""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import AsyncExitStack
from typing import Any

import pytest

from tests.webapp.rows import Feed, World
from webapp.runs import live, sharing

from .pages import batch, in_thread, opened


async def test_pages_at_the_same_event_share_what_is_read(
    world: World, feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[tuple[int, int]] = []

    def counted(run_id: int, after: int) -> dict[str, Any]:
        reads.append((run_id, after))
        return live.batch(run_id, after)

    monkeypatch.setattr(sharing, "batch", counted)
    monkeypatch.setattr(sharing, "GATHER", 0.2)
    async with AsyncExitStack() as stack:
        pages = [await stack.enter_async_context(opened(world, feed.run.pk)) for _ in range(5)]
        for page in pages:
            await page.send({"after": feed.run.journal})
        for page in pages:
            assert "now" in json.loads(await page.text())
        reads.clear()
        await in_thread(feed.metrics)(2.5)
        assert [(await batch(page))["points"]["loss"] for page in pages] == [[[1.0, 2.5]]] * 5
    assert reads == [(feed.run.pk, feed.run.journal)]


async def test_a_read_that_has_begun_is_not_shared(world: World, feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is committed while one page's rows are being read is in the answer to whoever asks after that."""
    began, go_on = threading.Event(), threading.Event()

    def held(run_id: int, after: int) -> dict[str, Any]:
        found = live.batch(run_id, after)
        began.set()
        assert go_on.wait(30)
        return found

    monkeypatch.setattr(sharing, "batch", held)
    start = feed.run.journal
    early = asyncio.create_task(sharing.BATCHES.after(feed.run.pk, start))
    assert await asyncio.to_thread(began.wait, 30)
    await in_thread(feed.metrics)(2.5)
    late = asyncio.create_task(sharing.BATCHES.after(feed.run.pk, start))
    await asyncio.sleep(0)
    go_on.set()
    assert ((await early).cursor, (await late).cursor) == (start, start + 1)


async def test_what_is_wrong_with_one_run_ends_no_other_page(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(run_id: int, after: int) -> dict[str, Any]:
        if run_id != feed.run.pk:
            raise ValueError("a row that can't be read")
        return live.batch(run_id, after)

    monkeypatch.setattr(sharing, "batch", broken)
    both = (sharing.BATCHES.after(run, feed.run.journal) for run in (feed.run.pk + 1, feed.run.pk))
    failed, found = await asyncio.gather(*both, return_exceptions=True)
    assert (type(failed), getattr(found, "cursor", None)) == (ValueError, feed.run.journal)
