"""One thread with an event loop of its own, on which a process keeps what outlives the loops of its callers.

A Celery worker has a new loop for each call (`async_to_sync`), the follower one for good, a thread none: a connection
belongs to the loop that made it, so those that are shared live here.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import Context
from typing import Any, TypeVar

T = TypeVar("T")
Work = Callable[[], Coroutine[Any, Any, T]]


class Dropped(Exception):
    """What was asked for was given up here, not by its caller."""


class Background:
    def __init__(self) -> None:
        self.pid = os.getpid()
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="ssh", daemon=True)
        self._thread.start()

    async def do(self, work: Work[T]) -> T:
        """Return what `work()` returns on the background's loop; raise what it raises.

        A cancelled caller is cancelled when `work` is: by then it has put its things in order.
        """
        if self.pid != os.getpid():
            raise Dropped("it belongs to the process that this one was forked from")
        call = _Call(work, self.loop)
        cancelled: asyncio.CancelledError | None = None
        while not call.done.done():
            try:
                await asyncio.wait([call.done])
            except asyncio.CancelledError as error:
                cancelled = error
                call.cancel()
        if cancelled is not None:
            raise cancelled
        return call.result()

    def stop(self) -> None:
        """End the thread, with whatever is under way."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


class _Call:
    """One task over there and, on the loop that made this, the future that says that it has ended."""

    def __init__(self, work: Work[Any], there: asyncio.AbstractEventLoop):
        self._work, self._there, self._here = work, there, asyncio.get_running_loop()
        self._task: asyncio.Task[Any] | None = None
        self.done: asyncio.Future[None] = self._here.create_future()
        # The caller's context would live as long as a connection that is opened on its behalf.
        there.call_soon_threadsafe(self._begin, context=Context())

    def _begin(self) -> None:
        self._task = self._there.create_task(self._work())
        self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        if not task.cancelled():
            task.exception()  # it is the caller's, even if that has gone
        with suppress(RuntimeError):  # the caller's loop has been closed: nobody waits
            self._here.call_soon_threadsafe(self._tell)

    def _tell(self) -> None:
        if not self.done.done():
            self.done.set_result(None)

    def cancel(self) -> None:
        self._there.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        if self._task is not None:  # always: calls to a loop keep their order
            self._task.cancel()

    def result(self) -> Any:
        assert self._task is not None
        if self._task.cancelled():
            raise Dropped("it was given up")
        return self._task.result()
