"""Batches for this process's sockets: read once for all pages that stand at the same event, and written once.

One thread reads them all, one after the other, over a connection that it keeps: Django would open one for each read,
which on SQLite took three times what the read itself takes (docs/decisions/0037-socket-and-log.md).
"""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from django.db import InterfaceError, OperationalError, connection

from .live import batch

GATHER = 0.002  # seconds: pages that one nudge has woken come to ask within this


@dataclass(frozen=True)
class Ready:
    """A batch as it is sent, the number it reaches, and whether there is more beyond."""

    text: str
    cursor: int
    more: bool


Key = tuple[asyncio.AbstractEventLoop, int, int]


class Batches:
    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "batches")
        self._asked: dict[Key, asyncio.Task[Ready]] = {}

    async def after(self, run_id: int, cursor: int) -> Ready:
        """Return what follows the event `cursor`: all that was committed before this was asked, or more."""
        key = (asyncio.get_running_loop(), run_id, cursor)
        if key not in self._asked:
            self._asked[key] = asyncio.create_task(self._ask(key))
        return await asyncio.shield(self._asked[key])  # one page that leaves takes nothing from the others

    async def _ask(self, key: Key) -> Ready:
        """Whoever asks once the read has begun may have been told of what it doesn't see, and gets one of their own."""
        await asyncio.sleep(GATHER)
        del self._asked[key]
        loop, run_id, cursor = key
        return await loop.run_in_executor(self._thread, _read, run_id, cursor)

    def close(self) -> None:
        """Close the thread's connection; the next read opens another."""
        self._thread.submit(lambda: connection.close()).result()  # looked up there: each thread has its own


def _read(run_id: int, cursor: int) -> Ready:
    try:
        found = batch(run_id, cursor)
    except (OperationalError, InterfaceError):  # the database has been started anew since the last read
        connection.close()
        found = batch(run_id, cursor)
    return Ready(written(found), found["cursor"], found["more"])


def written(content: Any) -> str:
    """Return strict JSON, as short as it can be."""
    return json.dumps(content, separators=(",", ":"), allow_nan=False)


BATCHES = Batches()
