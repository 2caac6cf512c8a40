"""The connections to one node: opened once for all who ask at that moment, and not hammered at where that fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import TypeVar

from .endpoint import Endpoint
from .errors import AgentFailed, SshError, Unreachable
from .opening import open_connection
from .pauses import Pauses
from .shared import Crowded, Shared

T = TypeVar("T")


class Way:
    """Lives on the background's loop. There is one connection, and others only where that has no room."""

    def __init__(
        self, endpoint: Endpoint, pauses: Pauses, through: Callable[[Endpoint], Awaitable[Shared]], idle: float
    ):
        """`through` returns the connection to a jump host; `idle`: see Shared."""
        self.endpoint, self._pauses, self._through, self._idle = endpoint, pauses, through, idle
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
                if error.hopeless:
                    fix = "Let its sshd_config allow sessions: see MaxSessions."
                    raise Unreachable(self.endpoint.name, f"it opens no session ({error})", fix) from error
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
        gate: Shared | None = None
        try:
            gate = await self._gate()
            shared = await self._open(gate)
        except BaseException:
            if gate is not None:
                gate.leave()
            raise
        finally:
            self._opening = None
        self.connections.append(shared)
        watching = asyncio.create_task(self._until_gone(shared, gate))
        self._watching.add(watching)  # kept, or it may be collected half-way
        watching.add_done_callback(self._watching.discard)
        return shared

    async def _gate(self) -> Shared | None:
        """Return the connection to the jump host, entered; what it raises is its failure and no reason to pause."""
        if self.endpoint.jump is None:
            return None
        try:
            gate = await self._through(self.endpoint.jump)
        except SshError as error:
            raise error.on_the_way(self.endpoint.name) from error
        gate.enter()
        return gate

    async def _open(self, gate: Shared | None) -> Shared:
        try:
            opened = await open_connection(self.endpoint, gate.connection if gate else None)
        except AgentFailed:  # not the node's failure
            raise
        except Unreachable as error:  # one that refuses a key has answered: who mends that tries again at once
            self._pauses.failed(error)
            raise
        self._pauses.succeeded()
        return Shared(*opened, self._idle)

    async def _until_gone(self, shared: Shared, gate: Shared | None) -> None:
        await shared.gone.wait()
        self.connections.remove(shared)
        if gate is not None:
            gate.leave()
