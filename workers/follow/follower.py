"""The follower: which streams are open, and one Link for each node of each job that has some."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from asgiref.sync import sync_to_async
from django.db import DatabaseError, connections

from webapp.runs import heartbeat, jobkinds
from webapp.runs.models import Stream
from webapp.runs.states import ON_NODES

from .link import Key, Link

T = TypeVar("T")
log = logging.getLogger(__name__)
NEW_STREAMS_SECONDS = 0.5
BEAT_SECONDS = 5.0


class Follower:
    """Keeps one Link a (job, node) while there is something to read there."""

    def __init__(self) -> None:
        # One thread writes: rows of a stream stay in order, and SQLite has one writer anyway.
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="journal")
        self._links: dict[Key, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Follow until cancelled."""
        beating = asyncio.create_task(self._beat())
        try:
            while True:
                await self.look()
                await asyncio.sleep(NEW_STREAMS_SECONDS)
        finally:
            beating.cancel()
            await self._end()

    async def look(self) -> None:
        """Begin with streams that are new, end with those that are closed."""
        try:
            jobs = await self.write(open_streams)
        except DatabaseError as error:
            log.warning("no look at the streams now, tried again: %s", error)
            return
        for key in self._links.keys() - jobs.keys():
            self._links.pop(key).cancel()
        for key, streams in jobs.items():
            link = self._links.get(key)
            if link and link.done() and not link.cancelled():
                log.error("following %s ended and begins again", key, exc_info=link.exception())
            if link is None or link.done():
                self._links[key] = asyncio.create_task(Link(key, streams, self.write).run())

    async def write(self, function: Callable[..., T], *args: Any) -> T:
        """Call a function that uses the database, in the thread that does."""
        return await sync_to_async(function, thread_sensitive=False, executor=self._writer)(*args)

    async def _beat(self) -> None:
        while True:
            await asyncio.to_thread(heartbeat.beat, "follower")
            await asyncio.sleep(BEAT_SECONDS)

    async def _end(self) -> None:
        for task in self._links.values():
            task.cancel()
        await asyncio.gather(*self._links.values(), return_exceptions=True)
        await asyncio.get_running_loop().run_in_executor(self._writer, connections.close_all)
        self._writer.shutdown()


def open_streams() -> dict[Key, list[Stream]]:
    """Return the open streams of jobs that run, by job and node."""
    rows = list(Stream.objects.filter(closed_at=None).select_related("attempt__run", "node__identity"))
    running = _running_jobs(rows)
    jobs: dict[Key, list[Stream]] = {}
    for stream in rows:
        job = (stream.job_kind, stream.job_id) if stream.job_kind and stream.job_id else None
        if job in running if job else stream.attempt.run.state in ON_NODES:
            jobs.setdefault(Key(stream.attempt_id, job, stream.node_id), []).append(stream)
    return jobs


def _running_jobs(rows: Iterable[Stream]) -> set[tuple[str, int]]:
    wanted: dict[str, set[int]] = {}
    for stream in rows:
        if stream.job_kind and stream.job_id:
            wanted.setdefault(stream.job_kind, set()).add(stream.job_id)
    found: set[tuple[str, int]] = set()
    for kind, ids in wanted.items():
        model = jobkinds.of(kind).model
        jobs = model._default_manager.filter(pk__in=ids, state=model.STATES.running)
        found |= {(kind, pk) for pk in jobs.values_list("pk", flat=True)}
    return found
