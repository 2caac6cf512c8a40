"""One SSH connection to a node, over which all its files are followed; made again for as long as it is wanted."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any

from django.db import DatabaseError

from training.spec.plan import training_argv
from webapp.fleet.ssh import CommandFailed, SshError, Talk, Unreachable, connect
from webapp.fleet.vault import WrongKey
from webapp.runs.models import Stream

from ..launch import release
from . import frames
from .frames import Frames, NoFrame
from .node import Target, show
from .reader import Batch, Reader, reader_of

Write = Callable[..., Awaitable[Any]]
Put = Callable[[Stream, Batch], Awaitable[None]]
Shown = tuple[bool | None, bool]  # of a node: whether it was shown as gone, and why
log = logging.getLogger(__name__)
PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0)  # seconds between tries to connect
GONE_SECONDS = 20.0  # without a link for so long, the node is shown as unreachable
SILENT_SECONDS = 20.0  # the other side says every five that it lives
PING_SECONDS = 5.0


@asynccontextmanager
async def beside(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Have `work` done meanwhile, and end it. Awaited itself, its end or failure would take a cancellation's place."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
        error = None if task.cancelled() else task.exception()
        if error and not isinstance(error, SshError):  # a lost connection is told by whoever hears
            log.error("telling a node", exc_info=error)


class Link:
    """Follows `streams` of one node, as they are at the moment. `write` runs a function in the database's thread."""

    def __init__(self, node: int, write: Write, put: Put):
        self.node, self._write, self._put = node, write, put
        self.streams: dict[int, Stream] = {}
        self._readers: dict[int, Reader] = {}
        self._told: set[int] = set()
        self._dropping: set[int] = set()  # of `_told`: those to be dropped, also where they are wanted anew by now
        self._changed = asyncio.Event()
        self._alive = self._now()
        self._shown: dict[int, Shown] = {}  # by attempt
        self._unshown = True  # there may be attempts that were told nothing yet

    def want(self, streams: Iterable[Stream], gone: Iterable[int]) -> None:
        """Begin with these streams, and end with those of these ids."""
        for number in gone:
            self._dropping.add(number)
            self.streams.pop(number, None)
            self._readers.pop(number, None)
        self.streams |= {stream.pk: stream for stream in streams}
        self._unshown = True
        self._changed.set()

    async def run(self) -> None:
        """Follow until cancelled."""
        failures, why = 0, ""
        while True:
            began = self._now()
            try:
                await self._connected()
            except (SshError, WrongKey, DatabaseError) as error:
                log.warning("following: %s", error)
                why = str(error) if isinstance(error, CommandFailed) else ""
            failures = 0 if self._alive > began else failures + 1
            if self._now() - self._alive > GONE_SECONDS:
                await self._show(True, why)
            await asyncio.sleep(PAUSES[min(failures, len(PAUSES) - 1)])

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    async def _connected(self) -> None:
        """Follow all files over one connection, until it ends."""
        target: Target = await self._write(Target.of, self.node)
        code = release.follower()
        argv = training_argv(target.slot, code.digest, "follow")
        async with connect(target.endpoint) as host:
            await release.put(host, target.slot.scratch, code)
            async with host.talk(argv) as talk, beside(self._tell(talk)):
                await self._hear(talk, target.name)

    async def _tell(self, talk: Talk) -> None:
        """Say which files are wanted, and now and then that somebody still listens."""
        self._told = set()
        while True:
            self._changed.clear()
            await talk.write(b"".join(self._orders()) or frames.PING)
            with suppress(TimeoutError):
                async with asyncio.timeout(PING_SECONDS):
                    await self._changed.wait()

    def _orders(self) -> list[bytes]:
        """Return what is to be said now, and count it as said."""
        gone = self._told & (self._dropping | (self._told - self.streams.keys()))
        orders = [frames.drop(number) for number in gone]
        for number in self.streams.keys() - (self._told - gone):
            stream = self.streams[number]
            read = self._readers[number].offset if number in self._readers else stream.offset
            reader = self._readers[number] = reader_of(stream.source, read)
            orders.append(frames.add(number, stream.path, reader.offset))
        self._told, self._dropping = set(self.streams), set()
        return orders

    async def _hear(self, talk: Talk, name: str) -> None:
        """Take what comes until the connection ends, always with SshError."""
        coming, known = Frames(), False
        while True:
            try:
                async with asyncio.timeout(SILENT_SECONDS):  # wait_for may lose a cancellation, up to Python 3.11
                    content = await talk.read()
            except TimeoutError as error:
                raise Unreachable(name, f"nothing came for {SILENT_SECONDS:.0f} s") from error
            if not content:
                raise await self._ended(talk, name, begun=coming.begun)
            try:
                found = coming.feed(content)
            except NoFrame as error:
                raise CommandFailed(name, "following its files", str(error)) from error
            if coming.begun and not known:
                known = True
                self._shown, self._unshown = {}, True  # somebody else may have shown it as gone meanwhile
            if coming.begun:
                self._alive = self._now()
                if self._unshown:
                    await self._show(False)
            for frame in found:
                await self._take(frame)

    async def _ended(self, talk: Talk, name: str, *, begun: bool) -> SshError:
        if begun:
            return Unreachable(name, "following its files ended")
        code, said = await talk.end()
        if code is None:
            return Unreachable(name, "connection lost before its files were followed")
        return CommandFailed(name, "following its files", said or f"it ended with status {code}")

    async def _take(self, frame: frames.Frame) -> None:
        stream, reader = self.streams.get(frame.id), self._readers.get(frame.id)
        if stream is None or reader is None:  # a beat, or of a file that was given up just now
            return
        known = reader.reached - frame.offset  # not 0: it was on its way when its file was dropped and added again
        if known < 0:
            return
        before, batch = reader.offset, reader.feed(frame.block[known:])
        if batch.offset > before:
            await self._put(stream, batch)

    async def _show(self, gone: bool, why: str = "") -> None:
        """Show on the runs whether the node can be reached; `why`: what it says for itself."""
        attempts = {s.attempt_id for s in self.streams.values() if not s.job_kind}
        before = {attempt: self._shown.get(attempt, (None, False)) for attempt in attempts}
        # Told once why, though its failures may take turns: with its word, and with a connection that ended before it.
        now: dict[int, Shown] = {attempt: (gone, gone and (told or bool(why))) for attempt, (_, told) in before.items()}
        wanted = sorted(attempt for attempt in attempts if now[attempt] != before[attempt])
        self._unshown = False
        try:
            if wanted:
                await self._write(show, self.node, wanted, gone, why)
            self._shown = now
        except DatabaseError as error:
            self._unshown = True
            log.warning("node %s: unreachable=%s not stored: %s", self.node, gone, error)
