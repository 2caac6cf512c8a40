"""What a link says to its node, and what it makes of what was on its way meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from webapp.fleet.ssh import Talk, Unreachable
from webapp.runs.models import Stream
from workers.follow.frames import Frame, add, drop
from workers.follow.link import Link, beside
from workers.follow.reader import Batch


def log(offset: int) -> Stream:
    return Stream(pk=5, source="log@0", path="/log", offset=offset)


async def test_a_file_that_is_wanted_anew_before_its_end_was_said_is_followed_on() -> None:
    put: list[Batch] = []

    async def keep(_: Stream, batch: Batch) -> None:
        put.append(batch)

    async def write(*_: Any) -> None:
        raise AssertionError

    link = Link(1, write, keep)
    link.want([log(0)], [])
    assert link._orders() == [add(5, "/log", 0)]
    link.want([], [5])
    link.want([log(100)], [])
    assert link._orders() == [drop(5), add(5, "/log", 100)]
    assert link._orders() == []
    await link._take(Frame(5, 200, b"on its way\n"))  # from before the drop, and beyond what the new reader has
    await link._take(Frame(5, 96, b"old\none\n"))
    await link._take(Frame(5, 100, b"one\ntwo\n"))
    assert [(batch.offset, [line.data["text"] for line in batch.lines]) for batch in put] == [
        (104, ["one"]),
        (108, ["two"]),
    ]
    link.want([], [5])
    assert link._orders() == [drop(5)]


async def test_a_node_that_fails_in_turns_is_told_of_once_until_it_is_back() -> None:
    told: list[tuple[Any, ...]] = []

    async def write(_: Any, node: int, attempts: list[int], gone: bool, why: str) -> None:
        told.append((node, attempts, gone, why))

    async def keep(*_: Any) -> None:
        raise AssertionError

    link = Link(1, write, keep)
    link.want([Stream(pk=5, attempt_id=7, source="node@0", path="/samples")], [])
    for why in ("", "no module", "", "no module"):
        await link._show(True, why)
    assert told == [(1, [7], True, ""), (1, [7], True, "no module")]
    await link._show(False)
    await link._show(True, "no module")
    assert told[2:] == [(1, [7], False, ""), (1, [7], True, "no module")]


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_it_ends_when_it_is_cancelled_though_something_came_in_the_same_moment() -> None:
    came: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    sent = [came]

    async def do(_: Any) -> bytes:
        return await (sent.pop() if sent else asyncio.get_running_loop().create_future())

    async def never(*_: Any) -> None:
        raise AssertionError

    hearing = asyncio.create_task(Link(1, never, never)._hear(Talk(do), "n0"))
    await turns(3)
    came.set_result(b"\0")  # the begin of something
    await turns(1)  # asyncio.wait_for would have it by now, and not yet say so
    hearing.cancel()
    await turns(10)
    assert hearing.cancelled()


async def lost() -> None:
    raise Unreachable("n0", "connection lost")


async def for_ever() -> None:
    await asyncio.Event().wait()


async def slow_to_end() -> None:
    try:
        await for_ever()
    finally:
        await turns(3)


@pytest.mark.parametrize(("telling", "hearing"), [(lost, for_ever), (slow_to_end, lost)])
async def test_it_ends_when_it_is_cancelled_though_telling_fails_or_is_slow_to_end(
    telling: Callable[[], Any], hearing: Callable[[], Awaitable[Any]]
) -> None:
    async def both() -> None:
        async with beside(telling()):
            await turns(1)
            await hearing()

    task = asyncio.create_task(both())
    await turns(3)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
