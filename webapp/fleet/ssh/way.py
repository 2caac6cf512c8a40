"""The connections to one node: opened once for all who ask at that moment, and not hammered at where that fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import TypeVar

from .endpoint import Endpoint
from .errors import SshError, Unreachable
from .pauses import Pauses
from .shared import Crowded, Shared

T = TypeVar("T")


class Way:
    """Lives on the background's loop. There is one connection, and others only where that has no room."""

    def __init__(self, endpoint: Endpoint, open: Callable[[Endpoint], Awaitable[Shared]], pauses: Pauses):
        self.endpoint, self._open, self._pauses = endpoint, open, pauses
        self.connections: list[Shared] = []
        self._opening: asyncio.Task[Shared] | None = None
        self._watching: set[asyncio.Task[None]] = set()

    @property
    def is_forgotten(self) -> bool:
        return not self.connections and not self._opening and self._pauses.is_over

    async def connection(self, tried: Collection[Shared] = ()) -> Shared:
        """Return one that is there, but for those `tried`, else a new one. Raises SshError."""
        for shared in self.connections:
            if shared.alive and shared not in tried:
                return shared
        if self._opening is None:
            self._refuse_too_soon()
            self._opening = asyncio.create_task(self._new())
        shared = await self._opened(self._opening)
        if not shared.alive:
            raise Unreachable(self.endpoint.name, "the connection was lost as soon as it was there")
        return shared

    async def with_room(self, first: Shared, use: Callable[[Shared], Awaitable[T]]) -> T:
        """Return `use` of a connection that has room for it: `first`, if it can be."""
        tried, shared = [first], first
        while True:
            try:
                return await use(shared)
            except Crowded as error:
                if not shared.open:
                    raise Unreachable(self.endpoint.name, f"it opens no session ({error})") from error
                shared = await self.connection(tried)
                tried.append(shared)

    def _refuse_too_soon(self) -> None:
        error = self._pauses.last_error()
        if error is not None:
            raise error.again() from error

    async def _opened(self, opening: asyncio.Task[Shared]) -> Shared:
        """Wait for the opening; who is cancelled meanwhile leaves it to the others."""
        try:
            return await asyncio.shield(opening)
        except SshError as error:  # one object, and many who raise it
            raise error.again() from error

    async def _new(self) -> Shared:
        try:
            shared = await self._open(self.endpoint)
        except SshError as error:
            self._pauses.failed(error)
            raise
        finally:
            self._opening = None
        self._pauses.succeeded()
        self.connections.append(shared)
        watching = asyncio.create_task(self._until_gone(shared))
        self._watching.add(watching)  # kept, or it may be collected half-way
        watching.add_done_callback(self._watching.discard)
        return shared

    async def _until_gone(self, shared: Shared) -> None:
        await shared.gone.wait()
        self.connections.remove(shared)
