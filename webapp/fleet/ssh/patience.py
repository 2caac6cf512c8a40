"""How long a node may leave work on its files without an answer: sshd lives on beside a disk that hangs."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")
SECONDS = 120.0
LET_GO = 10.0  # that putting things in order after a cancellation may take: it may hang as the work did


class TooLong(Exception):
    """A command, or an answer about a file, took longer than it may."""


class Patience:
    """Ends when for `seconds` nobody has said that the work goes on."""

    def __init__(self, seconds: float | None = None):
        self._loop = asyncio.get_running_loop()
        self._seconds = SECONDS if seconds is None else seconds
        self.goes_on()

    def goes_on(self, *_: object) -> None:
        """Say that the node has answered: it has all its time again. Arguments are for callbacks that get some."""
        self._until = self._loop.time() + self._seconds

    async def over(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what `work` returns. Raises TooLong; by then, as where the caller is cancelled, `work` has ended."""
        task = asyncio.create_task(work)
        try:
            while not task.done():
                if (left := self._until - self._loop.time()) <= 0:
                    raise TooLong
                await asyncio.wait([task], timeout=left)
        finally:
            await _end(task)
        return task.result()


async def let_go(work: Coroutine[Any, Any, object]) -> None:
    """Put things in order, or leave them where that hangs."""
    with suppress(TooLong):
        await Patience(LET_GO).over(work)


async def _end(task: asyncio.Task[Any]) -> None:
    """Cancel it until it gives in: each time one more of the things that it waits for is given up."""
    while not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=LET_GO)
    if not task.cancelled():
        task.exception()  # somebody has seen it
