"""Commands that came over SSH: each in a process group of its own, which ends with its channel."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress

import asyncssh

GRACE_SECONDS = 2.0
CHUNK = 1 << 16


class Commands:
    """Runs commands for one server and knows which are open."""

    def __init__(self) -> None:
        self._open: set[asyncio.Task[None]] = set()

    async def run(self, channel: asyncssh.SSHServerProcess[bytes]) -> None:
        """Serve one channel: run its command, pass bytes both ways, report its exit status."""
        if channel.command is None:
            channel.stderr.write(b"this host runs commands; it has no interactive shell\n")
            channel.exit(1)
            return
        # A task of its own: asyncssh forgets its handler when the connection is cut, and the end must still be made.
        task = asyncio.create_task(serve(channel, channel.command))
        self._open.add(task)
        task.add_done_callback(self._open.discard)
        await asyncio.shield(task)

    async def gone(self) -> None:
        """Return when no command is open."""
        while self._open:
            await asyncio.wait(set(self._open))


async def serve(channel: asyncssh.SSHServerProcess[bytes], command: str) -> None:
    """Run `command` until it has ended and said all, or its channel has closed; leave nothing of its group."""
    child = await asyncio.create_subprocess_exec(
        "/bin/sh",
        "-c",
        command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        process_group=0,
    )
    feeding = asyncio.create_task(feed(channel, child))
    working = asyncio.create_task(work(channel, child))
    closing = asyncio.create_task(channel.channel.wait_closed())
    try:
        await asyncio.wait({working, closing}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (feeding, working, closing):
            task.cancel()
        await asyncio.gather(feeding, working, closing, return_exceptions=True)
        await end_group(child)


async def work(channel: asyncssh.SSHServerProcess[bytes], child: asyncio.subprocess.Process) -> None:
    """Pass the output on until both ends are closed, then report how the command ended."""
    assert child.stdout is not None
    assert child.stderr is not None
    await asyncio.gather(pump(child.stdout, channel.stdout), pump(child.stderr, channel.stderr))
    code = await child.wait()
    if code < 0:
        channel.exit_with_signal(signal.Signals(-code).name.removeprefix("SIG"))
    else:
        channel.exit(code)


async def pump(source: asyncio.StreamReader, sink: asyncssh.SSHWriter[bytes]) -> None:
    with suppress(BrokenPipeError, ConnectionError, asyncssh.Error):
        while data := await source.read(CHUNK):
            sink.write(data)
            await sink.drain()


async def feed(channel: asyncssh.SSHServerProcess[bytes], child: asyncio.subprocess.Process) -> None:
    """Pass the client's input on, and its signals to the group; close the command's input at its end."""
    assert child.stdin is not None
    with suppress(BrokenPipeError, ConnectionError, asyncssh.Error):
        while True:
            try:
                data = await channel.stdin.read(CHUNK)
            except asyncssh.SignalReceived as received:
                signal_group(child, getattr(signal, f"SIG{received.signal}", signal.SIGTERM))
                continue
            if not data:
                break
            child.stdin.write(data)
            await child.stdin.drain()
    child.stdin.close()


async def end_group(child: asyncio.subprocess.Process) -> None:
    """TERM, a short grace, KILL, to whatever is left of the command's process group."""
    signal_group(child, signal.SIGTERM)
    with suppress(TimeoutError):
        async with asyncio.timeout(GRACE_SECONDS):
            await child.wait()
    signal_group(child, signal.SIGKILL)
    await child.wait()


def signal_group(child: asyncio.subprocess.Process, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, number)
