"""A command on a node that is written to and read from while it runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import asyncssh

CHUNK = 1 << 20
SHOWN = 2000

Do = Callable[[Callable[["Spoken"], Awaitable[Any]]], Awaitable[Any]]


class Spoken:
    """Lives on the background's loop. `stack` holds the command's channel."""

    def __init__(self, process: asyncssh.SSHClientProcess, stack: AsyncExitStack):
        self._process, self._stack = process, stack

    async def read(self) -> bytes:
        return bytes(await self._process.stdout.read(CHUNK))

    async def write(self, content: bytes) -> None:
        self._process.stdin.write(content)
        await self._process.stdin.drain()

    async def end(self) -> tuple[int | None, str]:
        done: Any = await self._process.wait()
        return done.exit_status, bytes(done.stderr or b"")[-SHOWN:].decode("utf-8", "backslashreplace")

    async def close(self) -> None:
        await self._stack.aclose()


class Talk:
    """The two ends of a running command. Every method raises Unreachable when the connection has gone."""

    def __init__(self, do: Do):
        self._do = do

    async def read(self) -> bytes:
        """Return what it has written, as soon as there is something; nothing when it has ended."""
        return bytes(await self._do(lambda spoken: spoken.read()))

    async def write(self, content: bytes) -> None:
        """Give it something to read; waits while it does not read."""
        await self._do(lambda spoken: spoken.write(content))

    async def end(self) -> tuple[int | None, str]:
        """Return its exit status, None where nobody told it, and what it complained of; call when it has ended."""
        code, said = await self._do(lambda spoken: spoken.end())
        return code, said
