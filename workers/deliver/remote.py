"""The receiving node's disk: what is there, whether it is whole, and the one rename that gives a folder its name."""

from __future__ import annotations

import posixpath
import stat
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress

from training.spec.deliver import refusals
from training.spec.deliver.folder import MARK, NEW, NO_FILE, OLD, WORKING, File, is_foreign, unfit
from training.spec.faults import Reason
from training.spec.lint import Problem
from webapp.fleet.ssh import Host, NotThere

from ..end.ending import End

HASH_BYTES_PER_SECOND = 20e6  # slower than any disk that is worth sending to
REMOVE_SECONDS = 600.0  # a folder of hundreds of gigabytes on slow storage
A_COMMAND = 100  # names


def work_of(folder: str) -> str:
    return folder + WORKING


def refusal(host: Host, problem: Problem, reason: Reason = Reason.DESTINATION) -> End:
    """Return how a delivery ends that can't go to this node."""
    return End(reason, f"{host.name}: {problem.reason}. {problem.fix}")


async def sizes(host: Host, folder: str) -> dict[str, int]:
    """Return bytes by name, as training.spec.deliver.folder has it; nothing where there is no folder."""
    if not await host.exists(folder):
        return {}
    kinds = await host.check(["find", folder, "-mindepth", "1", "-maxdepth", "1", "-printf", r"%y %s %f\0"])
    found = [entry.split(" ", 2) for entry in kinds.split("\0") if entry]
    return {name: int(size) if kind == "f" else NO_FILE for kind, size, name in found}


async def check_place(host: Host, folder: str) -> None:
    """Raise End where the folder around it is missing, it is no folder, or our working folder is somebody else's."""
    parent = posixpath.dirname(folder)
    if not await host.exists(parent):
        raise refusal(host, refusals.no_parent(parent))
    found = await host.run(["stat", "-c", "%f", "--", folder])
    if found.code == 0 and not stat.S_ISDIR(int(found.out, 16)):
        raise refusal(host, refusals.no_folder(folder))
    work = await host.run(["stat", "-c", "%f", "--", work_of(folder)])
    if work.code == 0 and (not stat.S_ISDIR(int(work.out, 16)) or is_foreign(await host.names(work_of(folder)))):
        raise refusal(host, refusals.in_the_way(folder))


async def make_work(host: Host, folder: str, delivery: int) -> None:
    """Make the working folder, or take over what another try left; the mark names the delivery that is at work."""
    work = work_of(folder)
    await host.check(["mkdir", "-p", "--", work])
    await host.check(["touch", "--", f"{work}/{MARK}"])  # before anything else is in it
    await host.put_text(f"{work}/{MARK}", str(delivery))
    await host.check(["mkdir", "-p", "--", f"{work}/{NEW}"])
    if await host.exists(folder):  # or else it is all that there is of what was to be replaced
        await _remove(host, [f"{work}/{OLD}"])


async def check_ours(host: Host, folder: str, delivery: int) -> None:
    """Raise End where another delivery took the working folder over, as two names of one disk allow."""
    with suppress(NotThere):
        if await host.read_text(f"{work_of(folder)}/{MARK}") == str(delivery):
            return
    why = f"{host.name}: {work_of(folder)} was taken by another delivery, or removed"
    raise End(Reason.DESTINATION, f"{why}; wait for the other's end, then send it again")


async def tidy(host: Host, folder: str, files: Sequence[File]) -> None:
    """Remove from `new` what is not of this delivery: of another export, or half a file of a worker that died."""
    new = f"{work_of(folder)}/{NEW}"
    await _remove(host, [f"{new}/{name}" for name in unfit(await sizes(host, new), files)])


async def check_room(host: Host, folder: str, needed: int) -> None:
    """Raise End where the disk has less room than is needed beyond what an earlier try left."""
    out = await host.check(["df", "-B1", "--output=avail", "--", posixpath.dirname(folder)])
    free = int(out.split()[-1])
    there = sum((await sizes(host, f"{work_of(folder)}/{NEW}")).values())
    if needed - there > free:
        raise refusal(host, refusals.no_room(posixpath.dirname(folder), needed - there, free), Reason.DISK_FULL)


async def is_whole(host: Host, path: str, file: File) -> bool:
    """Tell whether the file is there with its size and hash; the node reads it, nothing is sent."""
    if await host.size(path) != file.size or not await host.exists(path):
        return False
    seconds = 120.0 + file.size / HASH_BYTES_PER_SECOND
    out = await host.check(["sha256sum", "--", path], seconds=seconds)
    return out.split()[0].lstrip("\\") == file.sha256


async def receive(host: Host, path: str, file: File, blocks: AsyncIterator[bytes]) -> None:
    """Write one file, whole or not at all; raise End where the bytes are not those that were proven."""
    written = await host.write_stream(path, blocks)
    if written != (file.size, file.sha256):
        await host.discard(path)
        raise End(Reason.DATA, f"{file.name} is not what was proven (its hash differs); export it again")
    await host.commit(path)


async def take_place(host: Host, folder: str) -> None:
    """Put what has arrived into its place; what was there is kept beside it until `clear`."""
    work = work_of(folder)
    if await host.exists(folder):
        await _remove(host, [f"{work}/{OLD}"])
        await host.check(["mv", "-T", "--", folder, f"{work}/{OLD}"])
    await host.check(["mv", "-T", "--", f"{work}/{NEW}", folder])


async def clear(host: Host, folder: str) -> bool:
    """Remove the working folder, its mark last; return whether it held other content that had the place before."""
    work = work_of(folder)
    if MARK not in await host.names(work):
        return False
    replaced = bool(await host.names(f"{work}/{OLD}"))
    await _remove(host, [f"{work}/{name}" for name in await host.names(work) if name != MARK])
    await _remove(host, [work])
    return replaced


async def forget(host: Host, folder: str) -> None:
    """Remove what has come of an export that is damaged; what had the place before stays where it lies here alone."""
    work = work_of(folder)
    await _remove(host, [f"{work}/{NEW}"])
    if await host.exists(folder) or not await host.exists(f"{work}/{OLD}"):
        await clear(host, folder)


async def _remove(host: Host, paths: Sequence[str]) -> None:
    for first in range(0, len(paths), A_COMMAND):
        await host.check(["rm", "-rf", "--", *paths[first : first + A_COMMAND]], seconds=REMOVE_SECONDS)
