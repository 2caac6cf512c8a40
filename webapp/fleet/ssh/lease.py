"""What one holder does over a shared connection. Its end ends all that, and nothing of the others."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass
from typing import Any, TypeVar

import asyncssh

from . import files
from .background import Dropped
from .errors import SIGNALS
from .patience import Patience, TooLong, let_go
from .shared import Shared
from .talk import Spoken
from .way import Way

T = TypeVar("T")


@dataclass(frozen=True)
class Result:
    """How a command ended. `code` is 128 and the signal's number where one ended it, as a shell says it."""

    code: int
    out: str
    err: str


class Lease:
    """Lives on the background's loop."""

    def __init__(self, way: Way, shared: Shared):
        self.shared, self._way = shared, way
        self._used = [shared]
        shared.enter()
        self._works: set[asyncio.Task[Any]] = set()
        self._streams: set[AsyncGenerator[bytes, None]] = set()
        self._talks: set[Spoken] = set()
        self._files: Shared | None = None
        self._ended = False

    async def doing(self, work: Callable[[Lease], Awaitable[T]]) -> T:
        """Return what `work` returns, unless the lease ends meanwhile."""
        if self._ended:
            raise Dropped("it has been given back")
        task = asyncio.current_task()
        assert task is not None
        self._works.add(task)
        try:
            return await work(self)
        finally:
            self._works.discard(task)

    async def end(self) -> None:
        """End all that is under way: commands and readers are hung up, files closed."""
        self._ended = True
        try:
            for task in self._works:
                task.cancel()
            if self._works:
                await asyncio.wait(self._works)
            for stream in list(self._streams):
                await self.end_stream(stream)
            for spoken in list(self._talks):
                await self.end_talk(spoken)
        finally:
            for shared in self._used:
                shared.leave()

    async def step(self, stream: AsyncGenerator[bytes, None]) -> bytes | None:
        """Return the next block of `read`; None at the end."""
        self._streams.add(stream)
        return await Patience().over(_next(stream))

    async def end_stream(self, stream: AsyncGenerator[bytes, None]) -> None:
        self._streams.discard(stream)
        await let_go(_closed(stream))

    async def run(self, command: str, input: bytes, seconds: float) -> Result | None:
        """Run a command to its end; None where nobody told that. `seconds` count from its turn on."""
        async with AsyncExitStack() as stack:

            async def begin(shared: Shared) -> asyncssh.SSHClientProcess:
                return await stack.enter_async_context(shared.command(command, input))

            process = await self._way.with_room(self.shared, begin)
            try:
                async with asyncio.timeout(seconds):
                    out, err = await process.communicate()
            except TimeoutError:
                raise TooLong from None
            code = _code(process)
            return None if code is None else Result(code, _text(out), _text(err))

    async def talk(self, command: str) -> Spoken:
        """Start a command that is written to and read from until it is hung up: `end_talk`."""
        async with AsyncExitStack() as stack:

            async def begin(shared: Shared) -> asyncssh.SSHClientProcess:
                return await stack.enter_async_context(shared.reader(command))

            process = await self._way.with_room(self.shared, begin)
            spoken = Spoken(process, stack.pop_all())
            self._talks.add(spoken)
            return spoken

    async def end_talk(self, spoken: Spoken) -> None:
        self._talks.discard(spoken)
        await spoken.close()

    async def read(self, path: str, offset: int, length: int | None) -> AsyncGenerator[bytes, None]:
        async with aclosing(files.read(await self.sftp(), path, offset, length)) as blocks:
            async for block in blocks:
                yield block

    async def sftp(self) -> asyncssh.SFTPClient:
        if self._files is None:
            self._files = await self._way.with_room(self.shared, _with_files)
            if self._files not in self._used:
                self._used.append(self._files)
                self._files.enter()
        return await self._files.sftp()


async def _next(stream: AsyncGenerator[bytes, None]) -> bytes | None:
    return await anext(stream, None)


async def _closed(stream: AsyncGenerator[bytes, None]) -> None:
    await stream.aclose()


async def _with_files(shared: Shared) -> Shared:
    await shared.sftp()
    return shared


def _code(process: asyncssh.SSHClientProcess) -> int | None:
    """Return a shell's status of a command; None where the other side told none."""
    if process.exit_signal is None:
        return process.exit_status
    number = getattr(signal, f"SIG{process.exit_signal[0]}", None)  # a node may know others than this host
    return SIGNALS + number if isinstance(number, signal.Signals) else SIGNALS - 1


def _text(raw: Any) -> str:
    return bytes(raw or b"").decode("utf-8", "backslashreplace")
