"""One node over SSH.

    async with connect(node) as host:
        result = await host.run(["uname", "-a"])

The connection is shared by all of this process that goes on at the node, and stays for a minute: see pool.py. A Host
may be used from any thread and any event loop, at the same time.
"""

from __future__ import annotations

import hashlib
import secrets
import shlex
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TypeVar

import asyncssh
from asgiref.sync import sync_to_async

from ..models import Node
from . import files, pool
from .background import Background, Dropped
from .endpoint import Endpoint
from .errors import CommandFailed, CommandKilled, DiskFull, NotThere, Unreachable
from .lease import Lease, Result
from .patience import Patience, TooLong, let_go
from .talk import Talk

T = TypeVar("T")
COMMAND_SECONDS = 120.0


@asynccontextmanager
async def connect(node: Node | Endpoint, *, among: pool.Pool | None = None) -> AsyncIterator[Host]:
    """Yield the connected host. `among`: other connections than this process's own.

    At the end all that this host was asked for ends too; what runs detached stays.
    Raises HostKeyNotPinned, HostKeyChanged, AuthenticationFailed, Unreachable.
    """
    endpoint = node if isinstance(node, Endpoint) else await sync_to_async(Endpoint.of)(node)
    connections = among or pool.current()
    async with connections.lease(endpoint) as lease:
        yield Host(endpoint.name, lease, connections.background)


class Host:
    """A connected node. Paths are absolute, on the node. Every method raises Unreachable or CommandFailed.

    When its connection has gone it stays so: connect anew. A node that leaves work on its files without any answer for
    so long as patience.py says gives CommandFailed.
    """

    def __init__(self, name: str, lease: Lease, background: Background):
        self.name = name
        self._lease, self._background = lease, background
        self._suffix = secrets.token_hex(4)

    async def run(self, argv: Sequence[str], *, input: bytes = b"", seconds: float = COMMAND_SECONDS) -> Result:
        """Run a command to its end. One that takes longer than `seconds`, from its turn on, is CommandFailed.

        One whose end nobody told is Unreachable: the connection went first.
        """
        command = shlex.join(argv)
        result = await self._do(command, lambda lease: lease.run(command, input, seconds))
        if result is None:
            raise Unreachable(self.name, f"connection lost during {argv[0]}")
        return result

    async def check(self, argv: Sequence[str], *, seconds: float = COMMAND_SECONDS) -> str:
        """Run a command that must succeed; return its output."""
        result = await self.run(argv, seconds=seconds)
        if result.code != 0:
            raise CommandKilled.of(self.name, shlex.join(argv), result.code, result.err or result.out)
        return result.out

    async def put_text(self, path: str, text: str, mode: int = 0o644) -> None:
        """Write a file, whole or not at all; make its parents."""
        await self._file(f"writing {path}", lambda sftp: files.put_bytes(sftp, path, text.encode(), mode))

    async def put_file(self, path: str, local: Path) -> None:
        """Copy a local file, whole or not at all; make its parents."""
        await self._long(f"writing {path}", lambda sftp, way: files.put_file(sftp, path, local, way.goes_on))

    async def put_tree(self, path: str, tree: dict[str, bytes]) -> None:
        """Make a folder with these files (relative name: content), whole or not at all. One that is there stays."""
        await self._long(f"writing {path}", lambda sftp, way: files.put_tree(sftp, path, tree, way.goes_on))

    async def exists(self, path: str) -> bool:
        return bool(await self._file(f"looking at {path}", lambda sftp: sftp.exists(path)))

    async def size(self, path: str) -> int:
        """Return the size of a file in bytes; 0 where there is none."""
        return await self._file(f"looking at {path}", lambda sftp: files.size(sftp, path))

    async def names(self, path: str) -> list[str]:
        """Return the names in a folder; none where there is no folder."""
        return await self._file(f"listing {path}", lambda sftp: files.names(sftp, path))

    async def read_text(self, path: str) -> str:
        what = f"reading {path}"
        return (await self._long(what, lambda sftp, way: files.read_all(sftp, path, way.goes_on))).decode()

    def read_range(self, path: str, offset: int = 0, length: int | None = None) -> AsyncGenerator[bytes, None]:
        """Yield the bytes of a file from `offset`, at most `length` of them, in blocks of up to 1 MiB."""
        return self._stream(f"reading {path}", self._lease.read(path, offset, length))

    async def write_stream(self, path: str, blocks: AsyncIterator[bytes]) -> tuple[int, str]:
        """Write a file from `blocks` under a temporary name; return (size, SHA-256). `commit` gives it its name.

        Broken off by an error or a cancelled task it leaves nothing; only a killed worker or a lost connection does.
        """
        digest, written = hashlib.sha256(), 0
        async with self._writer(path) as write:
            async for block in blocks:
                await write(block)
                digest.update(block)
                written += len(block)
        return written, digest.hexdigest()

    @asynccontextmanager
    async def _writer(self, path: str) -> AsyncIterator[Callable[[bytes], Awaitable[None]]]:
        """Yield what writes the next block to the temporary name of `path`."""
        what, writer = f"writing {path}", files.Writer(files.temporary(path, self._suffix))
        try:
            await self._file(what, writer.open)
            yield lambda block: self._do(what, lambda _: Patience().over(writer.write(block)))
            await self._do(what, lambda _: Patience().over(writer.close()))
        except BaseException:  # also where the task is cancelled
            await self._background.do(lambda: let_go(writer.give_up()))
            raise

    async def commit(self, path: str) -> None:
        """Give what `write_stream` wrote its name."""
        work = files.temporary(path, self._suffix)
        await self._file(f"writing {path}", lambda sftp: sftp.posix_rename(work, path))

    async def discard(self, path: str) -> None:
        """Remove what `write_stream` wrote."""
        work = files.temporary(path, self._suffix)
        await self._file(f"removing {path}", lambda sftp: sftp.remove(work))

    async def remove(self, path: str) -> None:
        """Remove a file; one that isn't there is no error."""
        await self._file(f"removing {path}", lambda sftp: files.remove(sftp, path))

    @asynccontextmanager
    async def talk(self, argv: Sequence[str]) -> AsyncIterator[Talk]:
        """Start a command that is written to and read from while it runs; it is hung up when it is left."""
        what, command = f"talking to {argv[0]}", shlex.join(argv)
        spoken = await self._do(what, lambda lease: lease.talk(command))
        try:
            yield Talk(lambda work: self._do(what, lambda _: work(spoken)))
        finally:
            await self._background.do(lambda: self._lease.end_talk(spoken))

    async def closed(self) -> None:
        """Return when the connection has gone."""
        await self._background.do(self._lease.shared.gone.wait)

    async def _file(self, what: str, work: Callable[[asyncssh.SFTPClient], Awaitable[T]]) -> T:
        return await self._long(what, lambda sftp, _: work(sftp))

    async def _long(self, what: str, work: Callable[[asyncssh.SFTPClient, Patience], Awaitable[T]]) -> T:
        """Do what says by itself that it goes on."""

        async def with_sftp(lease: Lease) -> T:
            patience = Patience()

            async def all_of_it() -> T:
                return await work(await lease.sftp(), patience)

            return await patience.over(all_of_it())

        return await self._do(what, with_sftp)

    async def _do(self, what: str, work: Callable[[Lease], Awaitable[T]]) -> T:
        with self._errors(what):
            return await self._background.do(lambda: self._lease.doing(work))

    async def _stream(self, what: str, blocks: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
        """Yield what `blocks`, which runs on the background, yields."""
        try:
            while block := await self._do(what, lambda lease: lease.step(blocks)):
                yield block
        finally:
            await self._background.do(lambda: self._lease.end_stream(blocks))

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        """Turn the library's errors into ours."""
        try:
            yield
        except TooLong as error:
            raise CommandFailed(self.name, what, "it took too long") from error
        except (asyncssh.SFTPNoConnection, asyncssh.SFTPConnectionLost) as error:
            raise Unreachable(self.name, f"connection lost while {what}") from error
        except files.NoRoom as error:
            raise DiskFull(self.name, what, str(error)) from error
        except asyncssh.SFTPNoSuchFile as error:
            raise NotThere(self.name, what, error.reason) from error
        except asyncssh.SFTPError as error:
            raise CommandFailed(self.name, what, error.reason) from error
        except (asyncssh.Error, OSError, Dropped) as error:
            raise Unreachable(self.name, f"connection lost while {what} ({error})") from error
