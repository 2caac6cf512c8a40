"""The socket of a run page, through the whole application and a real Redis."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.test import Client

from tests.webapp.rows import Feed, World
from webapp.asgi import application
from webapp.runs import consumers, live

from .pages import HERE, batch, cookie, in_thread, opened, socket
from .visitor import Visitor


async def test_it_replays_from_the_cursor(world: World, feed: Feed) -> None:
    start = feed.run.journal
    await in_thread(feed.metrics)(3.0, 2.0, 1.0)
    async with opened(world, feed.run.pk) as page:
        await page.send({"after": start + 1})
        found = await batch(page)
    assert found["points"]["loss"] == [[2.0, 2.0], [3.0, 1.0]]
    assert found["cursor"] == start + 3


async def test_a_nudge_brings_a_batch(world: World, feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "LOOK_ANYWAY", 3600)
    async with opened(world, feed.run.pk) as page:
        await page.send({"after": 0})
        first = await batch(page)
        assert first["cursor"] == feed.run.journal
        await in_thread(feed.metrics)(2.5)
        found = await batch(page)
    assert found["points"]["loss"] == [[1.0, 2.5]]


async def test_it_looks_without_a_nudge(world: World, feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "LOOK_ANYWAY", 0.05)
    monkeypatch.setattr("webapp.runs.journal.nudge_on_commit", lambda runs, calm=(): None)
    async with opened(world, feed.run.pk) as page:
        await page.send({"after": feed.run.journal})
        for _ in range(2):  # the first says that the socket works, the next that it still does
            assert set(json.loads(await page.text())) == {"now"}
        await in_thread(feed.metrics)(2.5)
        assert (await batch(page))["points"]["loss"] == [[1.0, 2.5]]


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
    monkeypatch.setattr(consumers, "BELIEVED_SECONDS", 0.01)
    monkeypatch.setattr(consumers, "LOOK_ANYWAY", 3600)
    async with opened(world, feed.run.pk) as page:
        await page.send({"after": 0})
        await batch(page)
        await Session.objects.all().adelete()  # as a logout does
        assert await page.closed() == consumers.NOT_LOGGED_IN


async def test_it_rejects_bytes(world: World, feed: Feed) -> None:
    async with opened(world, feed.run.pk) as page:
        await page.send_input({"type": "websocket.receive", "bytes": b"\xff"})
        assert await page.closed() == consumers.BAD_MESSAGE


@pytest.mark.parametrize(
    "message",
    [
        "{}", "[]", "nonsense", '{"after": -1}', '{"after": true}', '{"after": "1"}',
        '{"after": 9223372036854775808}', '{"seen": "x"}', pytest.param("[" * 100_000, id="deep"),
    ],
)  # fmt: skip
async def test_it_rejects_a_bad_message(world: World, feed: Feed, message: str) -> None:
    async with opened(world, feed.run.pk) as page:
        await page.send_text(message)
        assert await page.closed() == consumers.BAD_MESSAGE


async def test_without_redis_it_closes_cleanly(world: World, feed: Feed, settings: Any) -> None:
    layer = settings.CHANNEL_LAYERS["default"]
    settings.CHANNEL_LAYERS = {"default": layer | {"CONFIG": {"hosts": ["redis://127.0.0.1:1"]}}}
    async with opened(world, feed.run.pk) as page:
        await page.send({"after": 0})
        assert await page.closed() == consumers.TRY_AGAIN


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


async def test_what_is_far_behind_is_told_to_begin_anew(
    world: World, feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "FAR", 10)
    start = feed.run.journal
    await in_thread(feed.metrics)(*(float(i) for i in range(11)))
    end = start + 11
    for after in (start, end + 50):  # too far behind, and of a database that is no more
        async with opened(world, feed.run.pk) as page:
            await page.send({"after": after})
            assert await batch(page) == {
                "cursor": end, "more": False, "points": {}, "log": [], "changed": [], "step": None, "fresh": True
            }  # fmt: skip
            await in_thread(feed.metrics)(1.0, after=end)
            end += 1
            assert (await batch(page))["points"]["loss"] == [[end, 1.0]]


async def test_a_page_that_takes_nothing_gets_no_queue(world: World, feed: Feed) -> None:
    """What comes while a slow page has three batches before it is one batch, once it has taken them."""
    async with opened(world, feed.run.pk) as page:
        await page.send({"after": feed.run.journal, "acks": True})
        assert "now" in json.loads(await page.text())
        taken = []
        for step in range(3):
            await in_thread(feed.metrics)(1.0, after=step)
            taken.append((await batch(page))["cursor"])
        for step in range(3, 40):
            await in_thread(feed.metrics)(1.0, after=step)
        assert await page.receive_nothing(0.3)
        await page.send({"seen": taken[-1]})
        assert len((await batch(page))["points"]["loss"]) == 37


async def test_a_log_line_waits_for_the_metric_that_follows(
    world: World, feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "LOOK_ANYWAY", 3600)
    line = ("log", None, {"text": "hello"})
    async with opened(world, feed.run.pk) as page:
        await page.send({"after": feed.run.journal})
        assert "now" in json.loads(await page.text())
        await in_thread(feed.write)("log@0", line)
        assert [entry["text"] for entry in (await batch(page))["log"]] == ["hello"], "by itself a little later"
        monkeypatch.setattr(consumers, "SOON", 3600)
        await in_thread(feed.write)("log@0", line)
        await in_thread(feed.metrics)(1.0)
        found = await batch(page)
        assert (len(found["log"]), len(found["points"]["loss"])) == (1, 1)
