"""Files on a node through SFTP: written under a temporary name, then renamed."""

from __future__ import annotations

import asyncio
import errno
import os
import posixpath
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import asyncssh

BLOCK = 1 << 20
PIECE = 1 << 18  # bytes a request: several are on the way at once, and OpenSSH answers no more than this
FULL = 1 << 20  # bytes: with less left than this, a write that failed failed for want of room
GoesOn = Callable[..., None]  # called with each part that is done; the arguments count for nothing
NO_ROOM = (asyncssh.SFTPNoSpaceOnFilesystem, asyncssh.SFTPQuotaExceeded)


class NoRoom(Exception):
    """The file system of the node is full."""


@asynccontextmanager
async def room(sftp: asyncssh.SFTPClient, path: str) -> AsyncIterator[None]:
    """Raise NoRoom where a write to `path` fails on a full disk. OpenSSH says only "Failure": so it is asked."""
    try:
        yield
    except asyncssh.SFTPError as error:
        if isinstance(error, NO_ROOM) or os.strerror(errno.ENOSPC) in error.reason or await _is_full(sftp, path):
            raise NoRoom(os.strerror(errno.ENOSPC)) from error
        raise


async def _is_full(sftp: asyncssh.SFTPClient, path: str) -> bool:
    with suppress(asyncssh.Error, OSError):  # no such extension, or no connection: then nobody knows
        found = await sftp.statvfs(posixpath.dirname(path))
        return bool(found.bavail * found.frsize < FULL)
    return False


def temporary(path: str, suffix: str) -> str:
    """Return the name beside `path` that a file has while it is written."""
    folder, name = posixpath.split(path)
    return posixpath.join(folder, f".{name}.{suffix}")


async def put_bytes(sftp: asyncssh.SFTPClient, path: str, content: bytes, mode: int) -> None:
    work = temporary(path, secrets.token_hex(4))
    await sftp.makedirs(posixpath.dirname(path), exist_ok=True)
    attributes = asyncssh.SFTPAttrs(permissions=mode)
    try:
        async with room(sftp, path), sftp.open(work, "wb", attributes) as file:
            await file.write(content)
        await sftp.chmod(work, mode)  # the server's umask has had its say
        await sftp.posix_rename(work, path)
    except BaseException:  # also where the task is cancelled
        await _give_up(sftp, work)
        raise


async def put_file(sftp: asyncssh.SFTPClient, path: str, local: Path, goes_on: GoesOn) -> None:
    work = temporary(path, secrets.token_hex(4))
    await sftp.makedirs(posixpath.dirname(path), exist_ok=True)
    try:
        async with room(sftp, path):
            await sftp.put(str(local), work, progress_handler=goes_on)
        await sftp.posix_rename(work, path)
    except BaseException:  # also where the task is cancelled
        await _give_up(sftp, work)
        raise


async def _give_up(sftp: asyncssh.SFTPClient, work: str) -> None:
    with suppress(asyncssh.Error, OSError):
        await sftp.remove(work)


async def put_tree(sftp: asyncssh.SFTPClient, path: str, tree: dict[str, bytes], goes_on: GoesOn) -> None:
    if await sftp.exists(path):
        return
    work = temporary(path, secrets.token_hex(4))
    try:
        async with room(sftp, path):
            for folder in sorted({posixpath.dirname(name) for name in tree}):
                await sftp.makedirs(posixpath.join(work, folder), exist_ok=True)
                goes_on()

            async def write(name: str, content: bytes) -> None:
                async with sftp.open(posixpath.join(work, name), "wb") as file:
                    await file.write(content)
                goes_on()

            await asyncio.gather(*(write(name, content) for name, content in tree.items()))
        await _take_name(sftp, work, path)
    finally:
        if await sftp.exists(work):
            await sftp.rmtree(work, ignore_errors=True)


async def _take_name(sftp: asyncssh.SFTPClient, work: str, path: str) -> None:
    try:
        await sftp.posix_rename(work, path)
    except asyncssh.SFTPError:
        if not await sftp.exists(path):  # else another put the same tree first
            raise


async def size(sftp: asyncssh.SFTPClient, path: str) -> int:
    try:
        return (await sftp.stat(path)).size or 0
    except asyncssh.SFTPNoSuchFile:
        return 0


async def names(sftp: asyncssh.SFTPClient, path: str) -> list[str]:
    try:
        return sorted(str(name) for name in await sftp.listdir(path) if name not in (".", ".."))
    except asyncssh.SFTPNoSuchFile:
        return []


async def remove(sftp: asyncssh.SFTPClient, path: str) -> None:
    with suppress(asyncssh.SFTPNoSuchFile):
        await sftp.remove(path)


async def read_all(sftp: asyncssh.SFTPClient, path: str, goes_on: GoesOn) -> bytes:
    blocks = []
    async for block in read(sftp, path, 0, None):
        blocks.append(block)
        goes_on()
    return b"".join(blocks)


async def read(sftp: asyncssh.SFTPClient, path: str, offset: int, length: int | None) -> AsyncGenerator[bytes, None]:
    left = length
    async with sftp.open(path, "rb", block_size=PIECE) as file:
        while left is None or left > 0:
            block = await file.read(BLOCK if left is None else min(BLOCK, left), offset)
            if not block:
                return
            yield block
            offset += len(block)
            left = None if left is None else left - len(block)


class Writer:
    """A file that is written piece by piece to `path`, a temporary name."""

    def __init__(self, path: str):
        self._path = path
        self._sftp: asyncssh.SFTPClient | None = None
        self._file: asyncssh.SFTPClientFile | None = None

    async def open(self, sftp: asyncssh.SFTPClient) -> None:
        self._sftp = sftp
        await sftp.makedirs(posixpath.dirname(self._path), exist_ok=True)
        self._file = await sftp.open(self._path, "wb")

    async def write(self, block: bytes) -> None:
        assert self._file is not None
        async with room(self._sftp, self._path):
            await self._file.write(block)

    async def close(self) -> None:
        assert self._file is not None
        await self._file.close()

    async def give_up(self) -> None:
        """Leave nothing: gigabytes, and the next try writes under another name."""
        if self._file is not None:
            with suppress(asyncssh.Error, OSError):
                await self._file.close()
        if self._sftp is not None:
            await _give_up(self._sftp, self._path)
