"""Files on a node through SFTP: written under a temporary name, then renamed."""

from __future__ import annotations

import asyncio
import hashlib
import posixpath
import secrets
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import asyncssh

BLOCK = 1 << 20


def temporary(path: str, suffix: str) -> str:
    """Return the name beside `path` that a file has while it is written."""
    folder, name = posixpath.split(path)
    return posixpath.join(folder, f".{name}.{suffix}")


async def put_bytes(sftp: asyncssh.SFTPClient, path: str, content: bytes, mode: int) -> None:
    work = temporary(path, secrets.token_hex(4))
    await sftp.makedirs(posixpath.dirname(path), exist_ok=True)
    attributes = asyncssh.SFTPAttrs(permissions=mode)
    async with sftp.open(work, "wb", attributes) as file:
        await file.write(content)
    await sftp.chmod(work, mode)  # the server's umask has had its say
    await sftp.posix_rename(work, path)


async def put_file(sftp: asyncssh.SFTPClient, path: str, local: Path) -> None:
    work = temporary(path, secrets.token_hex(4))
    await sftp.makedirs(posixpath.dirname(path), exist_ok=True)
    try:
        await sftp.put(str(local), work)
        await sftp.posix_rename(work, path)
    except (asyncssh.Error, OSError):
        with suppress(asyncssh.Error, OSError):
            await sftp.remove(work)
        raise


async def put_tree(sftp: asyncssh.SFTPClient, path: str, tree: dict[str, bytes]) -> None:
    if await sftp.exists(path):
        return
    work = temporary(path, secrets.token_hex(4))
    try:
        for folder in sorted({posixpath.dirname(name) for name in tree}):
            await sftp.makedirs(posixpath.join(work, folder), exist_ok=True)
        await asyncio.gather(*(_write(sftp, posixpath.join(work, name), content) for name, content in tree.items()))
        await _take_name(sftp, work, path)
    finally:
        if await sftp.exists(work):
            await sftp.rmtree(work, ignore_errors=True)


async def _write(sftp: asyncssh.SFTPClient, path: str, content: bytes) -> None:
    async with sftp.open(path, "wb") as file:
        await file.write(content)


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


async def read(sftp: asyncssh.SFTPClient, path: str, offset: int, length: int | None) -> AsyncIterator[bytes]:
    left = length
    async with sftp.open(path, "rb") as file:
        while left is None or left > 0:
            block = await file.read(BLOCK if left is None else min(BLOCK, left), offset)
            if not block:
                return
            yield block
            offset += len(block)
            left = None if left is None else left - len(block)


async def write_stream(sftp: asyncssh.SFTPClient, path: str, blocks: AsyncIterator[bytes]) -> tuple[int, str]:
    await sftp.makedirs(posixpath.dirname(path), exist_ok=True)
    digest, written = hashlib.sha256(), 0
    async with sftp.open(path, "wb") as file:
        async for block in blocks:
            await file.write(block)
            digest.update(block)
            written += len(block)
    return written, digest.hexdigest()
