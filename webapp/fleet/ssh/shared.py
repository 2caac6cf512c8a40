"""One connection, shared by all that goes on at a node: who uses it, and how many channels are open on it.

A server opens ten sessions a connection (sshd's MaxSessions), unless it is told otherwise. Commands wait for their
turn; readers, which nobody ends, and what a server goes on refusing are asked for on another connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

import asyncssh

T = TypeVar("T")
COMMANDS, READERS = 5, 4  # and one for files: ten
CLOSE_SECONDS = 1.0  # that a channel may take to close: OpenSSH waits for the command's end
# Between tries to open a channel, seconds: a server counts one that has just ended for a moment longer.
AGAIN = (0.05, 0.1, 0.2, 0.4, 0.8)
REFUSALS = (asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED, asyncssh.OPEN_CONNECT_FAILED, asyncssh.OPEN_RESOURCE_SHORTAGE)


class Crowded(Exception):
    """There is no room for another channel on this connection, and waiting may not help.

    `hopeless`: nor is there on another one, as none was opened on this one meanwhile.
    """

    def __init__(self, why: str, hopeless: bool = False):
        self.hopeless = hopeless
        super().__init__(why)


class Shared:
    """Lives on the background's loop. `idle`: seconds after which a connection that nobody uses is closed."""

    def __init__(self, connection: asyncssh.SSHClientConnection, gone: asyncio.Event, idle: float):
        self.connection, self.gone = connection, gone
        self.open = 0  # channels
        self._opened = 0  # channels ever
        self._most = COMMANDS + READERS + 1
        self._commands, self._readers = asyncio.Semaphore(COMMANDS), asyncio.Semaphore(READERS)
        self._users, self._idle = 0, idle
        self._sftp: asyncio.Task[asyncssh.SFTPClient] | None = None
        self._closing: asyncio.TimerHandle | None = None
        self._wait_for_users()

    @property
    def alive(self) -> bool:
        return not self.gone.is_set()

    def enter(self) -> None:
        self._users += 1
        if self._closing:
            self._closing.cancel()

    def leave(self) -> None:
        self._users -= 1
        if not self._users and self.alive:
            self._wait_for_users()

    def _wait_for_users(self) -> None:
        self._closing = asyncio.get_running_loop().call_later(self._idle, self.close)

    def close(self) -> None:
        if self.alive:
            self.connection.close()

    @asynccontextmanager
    async def command(self, command: str, input: bytes = b"") -> AsyncIterator[asyncssh.SSHClientProcess]:
        """Run a command in its turn. What still runs at the end is hung up."""
        async with self._commands, self._process(command, input) as process:
            yield process

    @asynccontextmanager
    async def reader(self, command: str) -> AsyncIterator[asyncssh.SSHClientProcess]:
        """Run a command that goes on until it is hung up. Raises Crowded rather than wait for others of its kind."""
        if self._readers.locked():
            raise Crowded(f"{READERS} readers are open")
        async with self._readers, self._process(command, b"") as process:
            yield process

    @asynccontextmanager
    async def _process(self, command: str, input: bytes) -> AsyncIterator[asyncssh.SSHClientProcess]:
        self.enter()
        try:
            process = await self._channel(lambda: self.connection.create_process(command, input=input, encoding=None))
            self.open += 1
            try:
                yield process
            finally:
                self.open -= 1
                await _end(process)
        finally:
            self.leave()

    async def sftp(self) -> asyncssh.SFTPClient:
        """Return the one SFTP session, opened when it is first asked for."""
        if self._sftp is None or _has_failed(self._sftp):
            self._sftp = asyncio.create_task(self._open_sftp())
        return await asyncio.shield(self._sftp)

    async def _open_sftp(self) -> asyncssh.SFTPClient:
        sftp = await self._channel(self.connection.start_sftp_client)
        self.open += 1
        self._watching = asyncio.create_task(self._until_closed(sftp))
        return sftp

    async def _until_closed(self, sftp: asyncssh.SFTPClient) -> None:
        await sftp.wait_closed()
        self.open -= 1
        self._sftp = None

    async def _channel(self, start: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return what `start` opens, asked for again where the server refuses. Raises Crowded."""
        if self.open >= self._most:
            raise Crowded(f"it opens {self._most} sessions a connection")
        before = self._opened
        for pause in (*AGAIN, None):
            try:
                opened = await _started(start)
                self._opened += 1
                return opened
            except asyncssh.ChannelOpenError as error:
                if not self.alive or error.code not in REFUSALS:
                    raise
                if pause is None:
                    self._most = max(self.open, 1)
                    raise Crowded(error.reason, hopeless=not self.open and self._opened == before) from error
                await asyncio.sleep(pause)
        raise AssertionError


def _has_failed(task: asyncio.Task[Any]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)


async def _started(start: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Await `start()`; where that is cancelled, what it opens is closed: half-way it can't be called back."""
    opening = asyncio.ensure_future(start())
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        opening.add_done_callback(_close_late)
        raise


def _close_late(opening: asyncio.Future[Any]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        _hang_up(opening.result())


async def _end(process: asyncssh.SSHClientProcess) -> None:
    if not process.channel.is_closing():
        _hang_up(process)
    with suppress(TimeoutError):
        async with asyncio.timeout(CLOSE_SECONDS):
            await process.wait_closed()


def _hang_up(process: asyncssh.SSHClientProcess) -> None:
    """Close the channel. The signal is for commands that neither read nor write, which would not notice.

    OpenSSH passes it on from 7.9 on, but not to root's commands.
    """
    with suppress(OSError):
        process.send_signal("HUP")
    process.channel.abort()
