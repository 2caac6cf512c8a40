"""The follower: which streams are open, one Link for each node that has some, one Keeper for what they read."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from asgiref.sync import sync_to_async
from django.db import DatabaseError, connections

from webapp.runs import heartbeat
from webapp.runs.models import Stream

from . import streams
from .keeper import Keeper
from .link import Link

T = TypeVar("T")
log = logging.getLogger(__name__)
NEW_STREAMS_SECONDS = 0.5
BEAT_SECONDS = 5.0


class Follower:
    """Keeps one Link a node while there is something to read there."""

    def __init__(self) -> None:
        # One thread writes: rows of a stream stay in order, and SQLite has one writer anyway.
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="journal")
        self._keeper = Keeper(self.write)
        self._links: dict[int, Link] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._ending: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Follow until cancelled."""
        beside = [asyncio.create_task(work) for work in (self._beat(), self._keeper.run())]
        try:
            while True:
                await self.look()
                for task in beside:
                    if task.done():
                        task.result()  # ends us: whoever started us starts us again
                await asyncio.sleep(NEW_STREAMS_SECONDS)
        finally:
            await self._end(beside)

    async def look(self) -> None:
        """Begin with streams that are new, end with those that are closed."""
        try:
            wanted = await self.write(streams.followed)
            known = {pk for link in self._links.values() for pk in link.streams}
            fresh = await self.write(streams.loaded, wanted.keys() - known) if wanted.keys() - known else []
        except DatabaseError as error:
            log.warning("no look at the streams now, tried again: %s", error)
            return
        for node in self._links.keys() - set(wanted.values()):
            self._links.pop(node)
            self._leave(self._tasks.pop(node))
        for node in set(wanted.values()):
            self._follow(node, wanted.keys(), [stream for stream in fresh if stream.node_id == node])

    def _leave(self, task: asyncio.Task[None]) -> None:
        """End a link that nobody wants any more; who ends all waits for it too."""
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        task.cancel()

    def _follow(self, node: int, wanted: Any, fresh: list[Stream]) -> None:
        task = self._tasks.get(node)
        if task is None or task.done():
            if task and not task.cancelled():
                log.error("following node %s ended and begins again", node, exc_info=task.exception())
            self._links[node] = Link(  # what the one before had is loaded at the next look
                node, self.write, self._keeper.put
            )
            self._tasks[node] = asyncio.create_task(self._links[node].run())
        link = self._links[node]
        if (gone := link.streams.keys() - wanted) or fresh:
            link.want(fresh, gone)

    async def write(self, function: Callable[..., T], *args: Any) -> T:
        """Call a function that uses the database, in the thread that does."""
        return await sync_to_async(function, thread_sensitive=False, executor=self._writer)(*args)

    async def _beat(self) -> None:
        while True:
            await asyncio.to_thread(heartbeat.beat, "follower")
            await asyncio.sleep(BEAT_SECONDS)

    async def _end(self, beside: list[asyncio.Task[None]]) -> None:
        tasks = [*beside, *self._tasks.values(), *self._ending]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.get_running_loop().run_in_executor(self._writer, connections.close_all)
        self._writer.shutdown()
