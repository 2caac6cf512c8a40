"""One SSH connection that follows the files of one job on one node, made again for as long as it is wanted."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from django.db import DatabaseError
from django.db.models import Q

from webapp.fleet.ssh import Endpoint, Host, SshError, connect
from webapp.runs import reach
from webapp.runs.models import Attempt, Stream

from .ingest import AWAY, store
from .reader import Batch, reader_of

T = TypeVar("T")
Write = Callable[..., Awaitable[Any]]
log = logging.getLogger(__name__)
PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0)  # seconds between tries to connect
GONE_SECONDS = 20.0  # without a link for so long, the node is shown as unreachable
DATABASE_PAUSE = 1.0


class Key(NamedTuple):
    """`job`: kind and id of a job of one node; None: the attempt itself."""

    attempt: int
    job: tuple[str, int] | None
    node: int


class Link:
    """`write` calls a function that uses the database in the thread that does."""

    def __init__(self, key: Key, streams: Sequence[Stream], write: Write):
        self.key, self.streams, self._write = key, streams, write
        self._endpoint = Endpoint.of(streams[0].node)
        self._alive = asyncio.get_running_loop().time()
        self._shown_gone: bool | None = None

    async def run(self) -> None:
        """Follow until cancelled."""
        failures = 0
        while True:
            began = self._now()
            try:
                await self._connected()
            except SshError as error:
                log.warning("following %s: %s", self._endpoint.name, error)
            failures = 0 if self._alive > began else failures + 1
            await self._show_gone(self._now() - self._alive > GONE_SECONDS)
            await asyncio.sleep(PAUSES[min(failures, len(PAUSES) - 1)])

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    async def _connected(self) -> None:
        """Follow all files over one connection, until it ends."""
        async with connect(self._endpoint) as host:
            await self._show_gone(False)
            try:
                async with asyncio.TaskGroup() as group:
                    for stream in self.streams:
                        group.create_task(self._follow(host, stream))
            except ExceptionGroup as errors:
                self._alive = self._now()
                raise errors.exceptions[0] from errors

    async def _follow(self, host: Host, stream: Stream) -> None:
        reader = reader_of(stream.source, stream.offset)
        async for block in host.follow(stream.path, stream.offset):
            batch = reader.feed(block)
            if batch.lines or batch.bad or batch.offset > stream.offset:
                await self._record(stream, batch)

    async def _record(self, stream: Stream, batch: Batch) -> None:
        """Store a batch, whatever the database says at first: what was read must not be lost."""
        while True:
            try:
                await self._write(store, stream, batch)
                return
            except AWAY as error:
                log.warning("%s: not stored yet, tried again: %s", stream, error)
                await asyncio.sleep(DATABASE_PAUSE)

    async def _show_gone(self, gone: bool) -> None:
        """Show on the run whether the node can be reached."""
        if gone == self._shown_gone or self.key.job is not None:
            return
        try:
            await self._write(show_gone, self.key, gone)
            self._shown_gone = gone
        except DatabaseError as error:
            log.warning("%s: unreachable=%s not stored: %s", self._endpoint.name, gone, error)


def show_gone(key: Key, gone: bool) -> None:
    reach.show(Attempt.objects.get(pk=key.attempt), Q(node=key.node), reachable=not gone)
