"""All connections of this process to nodes: one a node, shared by its threads, loops and tasks."""

from __future__ import annotations

import asyncio
import os
import random
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from .background import Background
from .endpoint import Endpoint
from .lease import Lease
from .pauses import Pauses
from .way import Way

IDLE_SECONDS = 60.0


class Pool:
    """`idle`: seconds that a connection nobody uses is kept. `clock` and `jitter` are for the pauses between tries."""

    def __init__(
        self,
        idle: float = IDLE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
    ):
        self.background = Background()
        self._idle, self._clock, self._jitter = idle, clock, jitter
        self._ways: dict[Endpoint, Way] = {}
        self._closed = False

    @asynccontextmanager
    async def lease(self, endpoint: Endpoint) -> AsyncIterator[Lease]:
        """Yield the right to use a connection to the node. Raises SshError."""
        made: list[Lease] = []  # also where the caller is cancelled in the moment when it is there

        async def take() -> None:
            way = self._way(endpoint)
            made.append(Lease(way, await way.connection()))

        try:
            await self.background.do(take)
            yield made[0]
        finally:
            for lease in made:
                await self.background.do(lease.end)

    def _way(self, endpoint: Endpoint) -> Way:
        for old in [key for key, way in self._ways.items() if way.is_forgotten]:
            del self._ways[old]
        if endpoint not in self._ways:
            pauses = Pauses(self._clock, self._jitter)
            self._ways[endpoint] = Way(endpoint, pauses, lambda jump: self._way(jump).connection(), self._idle)
        return self._ways[endpoint]

    def close(self) -> None:
        """End all connections, and the thread. Nothing can be asked of it any more."""
        if not self._closed:
            self._closed = True
            asyncio.run_coroutine_threadsafe(self._close(), self.background.loop).result()
            self.background.stop()

    async def _close(self) -> None:
        for way in self._ways.values():
            for shared in list(way.connections):
                shared.connection.abort()
                await shared.connection.wait_closed()

    def leave_to_parent(self) -> None:
        """Let go of the sockets in a forked process, without a word to the nodes: they are the parent's."""
        nothing = os.open(os.devnull, os.O_RDWR)
        for way in self._ways.values():
            for shared in way.connections:
                sock = shared.connection.get_extra_info("socket")
                with suppress(OSError, AttributeError):  # one that was just closing has none
                    os.dup2(nothing, sock.fileno(), inheritable=False)
        os.close(nothing)


_lock = threading.Lock()
_current: Pool | None = None
_parents: list[Pool] = []  # kept: what their destructors would do is the parent's to do


def current() -> Pool:
    """Return this process's pool, made when it is first asked for."""
    global _current
    with _lock:
        if _current is None:
            _current = Pool()
        return _current


def _forked() -> None:
    global _current, _lock
    _lock = threading.Lock()  # another thread may have held it
    if _current is not None:
        _current.leave_to_parent()
        _parents.append(_current)
        _current = None


os.register_at_fork(after_in_child=_forked)
