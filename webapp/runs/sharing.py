"""Batches for this process's sockets: read once for all pages that stand at the same event, and written once.

One thread reads them all over a connection that it keeps: Django would open one for each read, which on SQLite took
three times what the read itself takes (docs/decisions/0037-socket-and-log.md). It is handed all that pages ask for at
the same time at once, since going there and back took another third.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeVar

from django.conf import settings
from django.contrib.auth import get_user
from django.db import InterfaceError, OperationalError, connection
from django.http import HttpRequest

from .live import batch

T = TypeVar("T")
GATHER = 0.002  # seconds: pages that one nudge has woken come to ask within this


@dataclass(frozen=True)
class Ready:
    """A batch as it is sent, the number it reaches, and whether there is more beyond."""

    text: str
    cursor: int
    more: bool


Key = tuple[int, int]  # run, event
Asked = dict[Key, "asyncio.Future[Ready]"]


class Batches:
    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "batches")
        self._asked: dict[asyncio.AbstractEventLoop, Asked] = {}

    async def after(self, run_id: int, cursor: int) -> Ready:
        """Return what follows the event `cursor`: all that was committed before this was asked, or more."""
        loop = asyncio.get_running_loop()
        if loop not in self._asked:
            self._asked[loop] = {}
            loop.call_later(GATHER, self._begin, loop)
        asked = self._asked[loop].setdefault((run_id, cursor), loop.create_future())
        return await asyncio.shield(asked)  # one page that leaves takes nothing from the others

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Whoever asks once the read has begun may have been told of what it doesn't see, and gets one of their own."""
        asked = self._asked.pop(loop)
        reading = loop.run_in_executor(self._thread, _read_all, list(asked))
        reading.add_done_callback(lambda read: _answer(asked, read.result()))

    async def is_logged_in(self, session_key: str) -> bool:
        """Tell whether the session is still somebody's."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, _kept, _is_somebody, session_key)

    def close(self) -> None:
        """Close the thread's connection; the next read opens another."""
        self._thread.submit(lambda: connection.close()).result()  # looked up there: each thread has its own


def _answer(asked: Asked, found: list[Ready | Exception]) -> None:
    for waiting, answer in zip(asked.values(), found, strict=True):
        if isinstance(answer, Exception):
            waiting.set_exception(answer)
        else:
            waiting.set_result(answer)


def _read_all(asked: list[Key]) -> list[Ready | Exception]:
    """Return what was found for each, or why nothing was: what is wrong with one run's rows ends no other's page."""
    found: list[Ready | Exception] = []
    for run_id, cursor in asked:
        try:
            found.append(_read(run_id, cursor))
        except Exception as error:  # noqa: BLE001  raised where it was asked for
            found.append(error)
    return found


def _read(run_id: int, cursor: int) -> Ready:
    found = _kept(batch, run_id, cursor)
    return Ready(written(found), found["cursor"], found["more"])


def _is_somebody(session_key: str) -> bool:
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    return bool(get_user(request).is_authenticated)


def _kept(ask: Callable[..., T], *args: Any) -> T:
    """Ask by the connection that is kept, or by a new one where the database has been started anew meanwhile."""
    try:
        return ask(*args)
    except (OperationalError, InterfaceError):
        connection.close()
        return ask(*args)


def written(content: Any) -> str:
    """Return strict JSON, as short as it can be."""
    return json.dumps(content, separators=(",", ":"), allow_nan=False)


BATCHES = Batches()
