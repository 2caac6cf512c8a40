"""One node over one SSH connection.

    async with connect(node) as host:
        result = await host.run(["uname", "-a"])

Only the pinned key is trusted, only the node's identity is offered; no agent, no password, no ssh_config.
"""

from __future__ import annotations

import asyncio
import secrets
import shlex
import signal
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncssh
from asgiref.sync import sync_to_async

from ..models import Node
from . import files
from .errors import (
    SIGNALS,
    AuthenticationFailed,
    CommandFailed,
    CommandKilled,
    DiskFull,
    HostKeyChanged,
    HostKeyNotPinned,
    NotThere,
    Unreachable,
)
from .keys import fingerprint, host_key

CONNECT_SECONDS = 10
LOGIN_SECONDS = 20
COMMAND_SECONDS = 120.0
CHUNK = 1 << 20
# First those that processors have instructions for: half the time of the library's first choice for the same bytes.
CIPHERS = "^aes128-gcm@openssh.com,aes256-gcm@openssh.com"
# The shell waits on its standard input, which closes with the connection, so that no `tail` outlives it.
# A `tail` that begins without the file looks once a second for good, and one on NFS or overlayfs always does:
# so it begins when the file is there, and where it can't be told of changes it looks ten times a second.
FOLLOW = """\
{ until [ -e "$1" ]; do sleep 1; done; exec tail -c "+$2" -s 0.1 -F -- "$1" 2>/dev/null; } &
t=$!; exec >&-; read -r _; kill $t"""


@dataclass(frozen=True)
class Endpoint:
    """How to reach a node; made from its row where the database may be asked."""

    name: str
    address: str
    port: int
    user: str
    host_key: str
    private_key: str = field(repr=False)

    @classmethod
    def of(cls, node: Node) -> Endpoint:
        return cls(node.name, node.address, node.port, node.user, node.host_key, node.identity.private_key)


@dataclass(frozen=True)
class Result:
    """How a command ended. `code` is 128 and the signal's number where one ended it, as a shell says it."""

    code: int
    out: str
    err: str


class _Client(asyncssh.SSHClient):
    """Remembers the key that was refused."""

    shown = ""

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        self.shown = key.get_fingerprint()
        return False


@asynccontextmanager
async def connect(node: Node | Endpoint, *, keepalive: tuple[int, int] = (15, 4)) -> AsyncIterator[Host]:
    """Yield the connected host. `keepalive`: seconds between probes, and how many may stay unanswered.

    Raises HostKeyNotPinned, HostKeyChanged, AuthenticationFailed, Unreachable.
    """
    endpoint = node if isinstance(node, Endpoint) else await sync_to_async(Endpoint.of)(node)
    connection = await _open(endpoint, keepalive)
    host = Host(endpoint, connection)
    try:
        yield host
    finally:
        connection.abort()  # what runs detached stays, what hangs on us goes
        await connection.wait_closed()


async def _open(endpoint: Endpoint, keepalive: tuple[int, int]) -> asyncssh.SSHClientConnection:
    if not endpoint.host_key:
        raise HostKeyNotPinned(endpoint.name)
    pinned = asyncssh.import_public_key(endpoint.host_key)
    client = _Client()
    try:
        return await asyncssh.connect(
            endpoint.address, endpoint.port, username=endpoint.user, client_factory=lambda: client, config=None,
            known_hosts=([pinned], [], []), client_keys=[asyncssh.import_private_key(endpoint.private_key)],
            agent_path=None, password=None, preferred_auth="publickey", gss_host=None,
            connect_timeout=CONNECT_SECONDS, login_timeout=LOGIN_SECONDS, encryption_algs=CIPHERS,
            keepalive_interval=keepalive[0], keepalive_count_max=keepalive[1],
        )  # fmt: skip
    except asyncssh.HostKeyNotVerifiable as error:
        raise HostKeyChanged(endpoint.name, fingerprint(endpoint.host_key), client.shown) from error
    except asyncssh.PermissionDenied as error:
        key = asyncssh.import_private_key(endpoint.private_key).get_fingerprint()
        raise AuthenticationFailed(endpoint.name, endpoint.user, key) from error
    except (OSError, asyncssh.Error) as error:
        await _refuse_another_type(endpoint, error)
        where = f"{endpoint.address} port {endpoint.port}"
        why = str(error) or f"no answer within {CONNECT_SECONDS} s"
        raise Unreachable(endpoint.name, f"no connection to {where} ({why})") from error


async def _refuse_another_type(endpoint: Endpoint, error: Exception) -> None:
    """Raise HostKeyChanged where the host has no key of the pinned type: the key exchange fails, without saying so."""
    if not isinstance(error, (asyncssh.KeyExchangeFailed, asyncssh.ConnectionLost)):
        return
    shown = ""
    with suppress(Unreachable):
        shown = await host_key(endpoint.address, endpoint.port)
        await host_key(endpoint.address, endpoint.port, like=endpoint.host_key)
        return
    if shown:
        raise HostKeyChanged(endpoint.name, fingerprint(endpoint.host_key), fingerprint(shown)) from error


class Host:
    """A connected node. Paths are absolute, on the node. Every method raises Unreachable or CommandFailed."""

    def __init__(self, endpoint: Endpoint, connection: asyncssh.SSHClientConnection):
        self.name = endpoint.name
        self._connection = connection
        self._sftp: asyncssh.SFTPClient | None = None
        self._opening = asyncio.Lock()
        self._suffix = secrets.token_hex(4)

    async def run(self, argv: Sequence[str], *, input: bytes = b"", seconds: float = COMMAND_SECONDS) -> Result:
        """Run a command to its end. One that takes longer than `seconds` is CommandFailed.

        One whose end nobody told is Unreachable: the connection went first.
        """
        with self._errors(shlex.join(argv)):
            done = await self._connection.run(shlex.join(argv), input=input, encoding=None, timeout=seconds)
        code = _code(done)
        if code is None:
            raise Unreachable(self.name, f"connection lost during {argv[0]}")
        return Result(code, _text(done.stdout), _text(done.stderr))

    async def check(self, argv: Sequence[str], *, seconds: float = COMMAND_SECONDS) -> str:
        """Run a command that must succeed; return its output."""
        result = await self.run(argv, seconds=seconds)
        if result.code != 0:
            raise CommandKilled.of(self.name, shlex.join(argv), result.code, result.err or result.out)
        return result.out

    async def put_text(self, path: str, text: str, mode: int = 0o644) -> None:
        """Write a file, whole or not at all; make its parents."""
        with self._errors(f"writing {path}"):
            await files.put_bytes(await self.sftp(), path, text.encode(), mode)

    async def put_file(self, path: str, local: Path) -> None:
        """Copy a local file, whole or not at all; make its parents."""
        with self._errors(f"writing {path}"):
            await files.put_file(await self.sftp(), path, local)

    async def put_tree(self, path: str, tree: dict[str, bytes]) -> None:
        """Make a folder with these files (relative name: content), whole or not at all. One that is there stays."""
        with self._errors(f"writing {path}"):
            await files.put_tree(await self.sftp(), path, tree)

    async def exists(self, path: str) -> bool:
        with self._errors(f"looking at {path}"):
            return await (await self.sftp()).exists(path)

    async def size(self, path: str) -> int:
        """Return the size of a file in bytes; 0 where there is none."""
        with self._errors(f"looking at {path}"):
            return await files.size(await self.sftp(), path)

    async def names(self, path: str) -> list[str]:
        """Return the names in a folder; none where there is no folder."""
        with self._errors(f"listing {path}"):
            return await files.names(await self.sftp(), path)

    async def read_text(self, path: str) -> str:
        with self._errors(f"reading {path}"):
            return b"".join([block async for block in files.read(await self.sftp(), path, 0, None)]).decode()

    async def read_range(self, path: str, offset: int = 0, length: int | None = None) -> AsyncIterator[bytes]:
        """Yield the bytes of a file from `offset`, at most `length` of them, in blocks of up to 1 MiB."""
        with self._errors(f"reading {path}"):
            async for block in files.read(await self.sftp(), path, offset, length):
                yield block

    async def write_stream(self, path: str, blocks: AsyncIterator[bytes]) -> tuple[int, str]:
        """Write a file from `blocks` under a temporary name; return (size, SHA-256). `commit` gives it its name.

        Broken off by an error or a cancelled task it leaves nothing; only a killed worker or a lost connection does.
        """
        with self._errors(f"writing {path}"):
            return await files.write_stream(await self.sftp(), files.temporary(path, self._suffix), blocks)

    async def commit(self, path: str) -> None:
        """Give what `write_stream` wrote its name."""
        with self._errors(f"writing {path}"):
            await (await self.sftp()).posix_rename(files.temporary(path, self._suffix), path)

    async def discard(self, path: str) -> None:
        """Remove what `write_stream` wrote."""
        with self._errors(f"removing {path}"):
            await (await self.sftp()).remove(files.temporary(path, self._suffix))

    async def remove(self, path: str) -> None:
        """Remove a file; one that isn't there is no error."""
        with self._errors(f"removing {path}"):
            await files.remove(await self.sftp(), path)

    async def follow(self, path: str, offset: int = 0) -> AsyncIterator[bytes]:
        """Yield the bytes of a growing file from `offset` on, as they come; a missing file is waited for.

        Ends with Unreachable when the connection does, and when the remote reader dies.
        """
        with self._errors(f"following {path}"):
            command = shlex.join(["sh", "-c", FOLLOW, "follow", path, str(offset + 1)])
            async with self._connection.create_process(command, encoding=None) as process:
                while block := await process.stdout.read(CHUNK):
                    yield block
        raise Unreachable(self.name, f"following {path} ended")

    async def closed(self) -> None:
        """Return when the connection has gone."""
        await self._connection.wait_closed()

    async def sftp(self) -> asyncssh.SFTPClient:
        async with self._opening:
            if self._sftp is None:
                self._sftp = await self._connection.start_sftp_client()
            return self._sftp

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        """Turn the library's errors into ours."""
        try:
            yield
        except asyncssh.ProcessError as error:  # TimeoutError of a command is one
            raise CommandFailed(self.name, what, "it took too long") from error
        except (asyncssh.SFTPNoConnection, asyncssh.SFTPConnectionLost) as error:
            raise Unreachable(self.name, f"connection lost while {what}") from error
        except files.NoRoom as error:
            raise DiskFull(self.name, what, str(error)) from error
        except asyncssh.SFTPNoSuchFile as error:
            raise NotThere(self.name, what, error.reason) from error
        except asyncssh.SFTPError as error:
            raise CommandFailed(self.name, what, error.reason) from error
        except (asyncssh.Error, OSError) as error:
            raise Unreachable(self.name, f"connection lost while {what} ({error})") from error


def _code(done: asyncssh.SSHCompletedProcess) -> int | None:
    """Return a shell's status of a command; None where the other side told none."""
    if done.exit_signal is None:
        return done.exit_status
    number = getattr(signal, f"SIG{done.exit_signal[0]}", None)  # a node may know others than this host
    return SIGNALS + number if isinstance(number, signal.Signals) else SIGNALS - 1


def _text(raw: Any) -> str:
    return bytes(raw or b"").decode("utf-8", "backslashreplace")
