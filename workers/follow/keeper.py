"""What links have read waits here, and all of it is stored at once: one transaction for many streams."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from webapp.runs.models import Stream

from .folds import Folds
from .ingest import AWAY, store_all
from .reader import Batch

Write = Callable[..., Awaitable[Any]]
log = logging.getLogger(__name__)
DATABASE_PAUSE = 1.0
LONGEST_REST = 0.1  # seconds: while it rests others' lines come in; a lone line is stored at once
MOST = 20_000  # lines that may wait; then who reads waits


class Keeper:
    """Keeps what is put, in the order in which each stream's came. `write` runs a function in the database's thread."""

    def __init__(self, write: Write):
        self._write = write
        self._folds = Folds()
        self._waiting: dict[int, tuple[Stream, Batch]] = {}
        self._lines = 0
        self._some = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    async def put(self, stream: Stream, batch: Batch) -> None:
        """Hand over what was read of a stream beyond what was handed over before."""
        await self._room.wait()
        if held := self._waiting.get(stream.pk):
            held[1].extend(batch)
        else:
            self._waiting[stream.pk] = (stream, batch)
        self._lines += len(batch.lines)
        self._some.set()
        if self._lines > MOST:
            self._room.clear()

    async def run(self) -> None:
        """Store what is put, until cancelled."""
        clock = asyncio.get_running_loop().time
        while True:
            await self._some.wait()
            taken = list(self._waiting.values())
            self._waiting, self._lines = {}, 0
            self._some.clear()
            began = clock()
            await self._store(taken)
            self._room.set()
            await asyncio.sleep(min(LONGEST_REST, clock() - began))

    def _keep(self, taken: list[tuple[Stream, Batch]]) -> None:
        before = [stream.last_seq for stream, _ in taken]
        store_all(taken)
        for (stream, _), seq in zip(taken, before, strict=True):
            self._folds.stored(stream, seq)
        self._folds.some()

    async def _store(self, taken: list[tuple[Stream, Batch]]) -> None:
        """Store them whatever the database says at first: what was read must not be lost."""
        while True:
            try:
                await self._write(self._keep, taken)
                return
            except AWAY as error:
                log.warning("%d streams: not stored yet, tried again: %s", len(taken), error)
                await asyncio.sleep(DATABASE_PAUSE)
