"""One SSH host on loopback: python -m workers.local.hosts --port P --state DIR --authorized-keys FILE

A real SSH server (asyncssh) that stands in for a node: key authentication, commands through /bin/sh as the user
who runs it, SFTP; no forwarding, no terminal. Listens on 127.0.0.1 only. When it listens it prints one JSON line
{"address", "port", "user", "host_key"}; port 0 lets the system choose. SIGTERM ends it and every open command.
The host key is made once, in DIR. Commands that went to a session of their own (supervisors) live on.
"""

from __future__ import annotations

import argparse
import asyncio
import getpass
import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import asyncssh

from .commands import Commands
from .hostkey import FILE, public_host_key

ADDRESS = "127.0.0.1"
KEEPALIVE_SECONDS = 30
CLOSE_SECONDS = 10


def main() -> int:
    """Serve until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(prog="python -m workers.local.hosts", description="One SSH host on loopback.")
    parser.add_argument("--port", type=int, required=True, help="TCP port on 127.0.0.1; 0: any free one")
    parser.add_argument("--state", type=Path, required=True, help="folder of the host key; made where missing")
    parser.add_argument("--authorized-keys", type=Path, required=True, help="public keys that may log in, one a line")
    options = parser.parse_args()
    state, keys = options.state.resolve(), options.authorized_keys.resolve()
    home = Path.home()
    os.chdir(home if home.is_dir() else "/")  # where a login would begin; SFTP's relative paths start here
    try:
        asyncio.run(serve(options.port, state, keys))
    except (OSError, ValueError) as error:
        print(f"local host on port {options.port}: {error}", file=sys.stderr)
        return 1
    return 0


async def serve(port: int, state: Path, authorized_keys: Path) -> None:
    """Listen, say so on stdout, and return when told to end and every open command is gone."""
    public = public_host_key(state)
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    host = LocalHost(authorized_keys)
    listener = await host.listen(port, asyncssh.read_private_key(str(state / FILE)))
    body = {"address": ADDRESS, "port": listener.get_port(), "user": getpass.getuser(), "host_key": public}
    print(json.dumps(body), flush=True)
    await ended.wait()
    listener.close()
    await host.close()


class LocalHost:
    """The server's parts: who may log in, the connections, the commands."""

    def __init__(self, authorized_keys: Path):
        self.authorized_keys = authorized_keys
        self.commands = Commands()
        self.connections: set[asyncssh.SSHServerConnection] = set()

    async def listen(self, port: int, key: asyncssh.SSHKey) -> asyncssh.SSHAcceptor:
        """Open the port. Raises OSError where it is taken."""
        return await asyncssh.listen(
            ADDRESS,
            port,
            server_factory=lambda: Login(self),
            reuse_address=True,  # a host that starts again finds its old connections lingering
            server_host_keys=[key],
            process_factory=self.commands.run,
            encoding=None,
            sftp_factory=True,
            allow_pty=False,
            agent_forwarding=False,
            x11_forwarding=False,
            public_key_auth=True,
            password_auth=False,
            kbdint_auth=False,
            host_based_auth=False,
            gss_host=None,
            keepalive_interval=KEEPALIVE_SECONDS,
        )

    async def close(self) -> None:
        """Cut every connection and wait until their commands are gone."""
        for connection in list(self.connections):
            connection.abort()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self.commands.gone()


class Login(asyncssh.SSHServer):
    """One connection. Everything that asyncssh would forward is refused by its defaults."""

    def __init__(self, host: LocalHost):
        self.host = host
        self.connection: asyncssh.SSHServerConnection | None = None

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self.connection = conn
        self.host.connections.add(conn)

    def connection_lost(self, exc: Exception | None) -> None:
        self.host.connections.discard(self.connection)

    def begin_auth(self, username: str) -> bool:
        """Read the keys anew for each login; commands run as our user, so nobody else has an account here."""
        if self.connection and username == getpass.getuser():
            keys = read_keys(self.host.authorized_keys)
            if keys:
                self.connection.set_authorized_keys(keys)
        return True


def read_keys(path: Path) -> asyncssh.SSHAuthorizedKeys | None:
    """Return the keys that may log in; None where the file is missing, empty or broken."""
    try:
        return asyncssh.read_authorized_keys(str(path))
    except (OSError, ValueError) as error:
        print(f"{path}: {error}", file=sys.stderr)
        return None


if __name__ == "__main__":
    sys.exit(main())
