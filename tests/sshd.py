"""A real SSH server on loopback for tests: real keys, real processes, real files, in a thread of its own."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from contextlib import suppress
from typing import Any

import asyncssh


class Server(asyncssh.SSHServer):
    def __init__(self, host: Sshd):
        self.host = host

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self.host.connections.append(conn)
        self.connection = conn

    def begin_auth(self, username: str) -> bool:
        if self.host.lets_nobody_in:
            self.connection.abort()
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        return key.export_public_key().split()[1] == self.host.accepted.split()[1].encode()


class Sshd:
    """`cut()` drops every connection; `stop()` and `start()` take the port away and back.

    `lets_nobody_in`: ends connections where somebody logs in.
    """

    def __init__(self, accepted: str, address: str = "127.0.0.1", sftp: Any = True):
        self.accepted, self.address, self.port, self.sftp = accepted, address, 0, sftp
        self.key = asyncssh.generate_private_key("ssh-ed25519")
        self.connections: list[asyncssh.SSHServerConnection] = []
        self.commands: list[str] = []
        self.lets_nobody_in = False
        self._children: set[asyncio.subprocess.Process] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._acceptor: asyncssh.SSHAcceptor | None = None
        self.start()

    @property
    def host_key(self) -> str:
        return self.key.export_public_key().decode().strip()

    def start(self) -> None:
        self._acceptor = self._do(self._listen())
        self.port = self._acceptor.get_port()

    def stop(self) -> None:
        self._do(self._close())
        self.cut()

    def cut(self) -> None:
        self._do(self._abort())

    def finish(self) -> None:
        self.stop()
        self._do(self._end_children())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _do(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(30)

    async def _listen(self) -> asyncssh.SSHAcceptor:
        return await asyncssh.listen(
            self.address,
            self.port,
            server_factory=lambda: Server(self),
            server_host_keys=[self.key],
            process_factory=self._run,
            sftp_factory=self.sftp,
            encoding=None,
            reuse_address=True,
        )

    async def _close(self) -> None:
        if self._acceptor:
            self._acceptor.close()
            await self._acceptor.wait_closed()
            self._acceptor = None

    async def _abort(self) -> None:
        for connection in self.connections:
            connection.abort()
        self.connections.clear()

    async def _end_children(self) -> None:
        for child in self._children:
            child._transport.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, process: asyncssh.SSHServerProcess) -> None:
        self.commands.append(process.command)
        pipe = asyncio.subprocess.PIPE
        # A log-in hears a hang-up, also where whoever runs the tests (nohup) does not.
        argv = ("env", "--default-signal=HUP", "sh", "-c", process.command)
        child = await asyncio.create_subprocess_exec(
            *argv, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
        )
        self._children.add(child)
        feeding = asyncio.ensure_future(_feed(process.stdin, child))
        with suppress(asyncssh.Error, OSError):
            await asyncio.gather(_drain(child.stdout, process.stdout), _drain(child.stderr, process.stderr))
        code = await child.wait()
        self._children.discard(child)
        feeding.cancel()
        with suppress(asyncssh.Error, OSError):
            if code < 0:
                process.exit_with_signal(signal.Signals(-code).name.removeprefix("SIG"))
            else:
                process.exit(code)


async def _feed(source: asyncssh.SSHReader, child: asyncio.subprocess.Process) -> None:
    """Pass input and signals on: to all of the command's processes, as OpenSSH does."""
    with suppress(asyncssh.Error, OSError):
        try:
            while block := await source.read(1 << 16):
                child.stdin.write(block)
                await child.stdin.drain()
        except asyncssh.SignalReceived as received:
            os.killpg(child.pid, signal.Signals[f"SIG{received.signal}"])
    child.stdin.close()


async def _drain(source: asyncio.StreamReader, sink: asyncssh.SSHWriter) -> None:
    while block := await source.read(1 << 16):
        sink.write(block)
        await sink.drain()
