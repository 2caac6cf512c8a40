"""The receiving node's disk: what is there, whether it is whole, and the one rename that gives a folder its name."""

from __future__ import annotations

import posixpath
from collections.abc import AsyncIterator
from contextlib import suppress

from training.spec.deliver import WORKING
from training.spec.faults import Reason
from webapp.fleet.ssh import Host, SshError

from ..end.ending import End
from .contents import File

MARK = "of-shardboard"  # says that a working folder is ours, as `python -m training deliver` says it
HASH_BYTES_PER_SECOND = 20e6  # slower than any disk that is worth sending to


def work_of(folder: str) -> str:
    return folder + WORKING


async def names(host: Host, folder: str) -> list[str]:
    return [name for name in await host.names(folder) if name not in (".", "..")]


async def check_parent(host: Host, folder: str) -> None:
    """Raise End where the folder around it is missing, or our working folder is somebody else's."""
    parent = posixpath.dirname(folder)
    if not await host.exists(parent):
        raise End(Reason.DESTINATION, f"{host.name}: {parent} is not there; make that folder")
    there = await names(host, work_of(folder))
    if there and MARK not in there:
        raise End(Reason.DESTINATION, f"{host.name}: {work_of(folder)} is in the way and no delivery made it")


async def check_room(host: Host, folder: str, needed: int) -> None:
    """Raise End where the disk has less room than is needed beyond what an earlier try left."""
    out = await host.check(["df", "-B1", "--output=avail", "--", posixpath.dirname(folder)])
    free = int(out.split()[-1])
    new = f"{work_of(folder)}/new"
    there = sum([await host.size(f"{new}/{name}") for name in await names(host, new)])
    if needed - there > free:
        why = f"{needed - there:,} bytes are needed in {posixpath.dirname(folder)} and {free:,} are free"
        raise End(Reason.DISK_FULL, f"{host.name}: {why}")


async def is_whole(host: Host, path: str, file: File) -> bool:
    """Tell whether the file is there with its size and hash; the node reads it, nothing is sent."""
    if await host.size(path) != file.size or not await host.exists(path):
        return False
    seconds = 120.0 + file.size / HASH_BYTES_PER_SECOND
    out = await host.check(["sha256sum", "--", path], seconds=seconds)
    return out.split()[0].lstrip("\\") == file.sha256


async def receive(host: Host, path: str, file: File, blocks: AsyncIterator[bytes]) -> None:
    """Write one file, whole or not at all; raise End where the bytes are not those that were proven."""
    try:
        written = await host.write_stream(path, blocks)
    except SshError:
        with suppress(SshError):  # gigabytes, and the next try writes under another name
            await host.discard(path)
        raise
    if written != (file.size, file.sha256):
        await host.discard(path)
        raise End(Reason.DATA, f"{file.name} is not what was proven (its hash differs); export it again")
    await host.commit(path)


async def take_place(host: Host, folder: str) -> bool:
    """Put what has arrived into its place; return whether other content had to go for that."""
    work = work_of(folder)
    new, old = f"{work}/new", f"{work}/old"
    if await host.exists(new):
        if await host.exists(folder):
            await host.check(["rm", "-rf", "--", old])
            await host.check(["mv", "-T", "--", folder, old])
        await host.check(["mv", "-T", "--", new, folder])
    replaced = bool(await names(host, old))
    await host.check(["rm", "-rf", "--", work])
    return replaced
