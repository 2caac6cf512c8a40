"""Have one node take files of another over an SSH server of this transfer's own; this service only says so.

The private key is made on the node that takes and never leaves it. Both sides end by themselves when this service
does: the one that takes when it has everything, the one that lends when nobody is connected any more.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import PurePosixPath

from pydantic import BaseModel

from training.spec.faults import Reason
from training.spec.folder import Scratch
from training.spec.plan import training_argv
from training.spec.transfer import Lent, Loan, Taken, Taking, Wanted
from webapp.fleet.ssh import CommandFailed, NotThere, SshError

from ..end.ending import End
from ..launch import release
from .count import Count, Share
from .parts import File, Place

SOON_SECONDS = 60.0
LOOK_SECONDS = 0.5
SILENT_SECONDS = 60.0
GIVE_BACK_LOOKS, GIVE_BACK_PAUSE = 20, 0.1
FATAL = {  # the way through this service would end the same
    Reason.DATA: "; choose another checkpoint",
    Reason.DISK_FULL: " on node {}; make room there",
}


class NotDirectly(Exception):
    """The two nodes can't do it between them; says why."""


async def fetch(files: Sequence[File], holder: Place, target: Place, count: Count) -> None:
    """Bring `files` from `holder` to `target`. Raises NotDirectly, and End where another way would not help."""
    name = secrets.token_hex(8)
    try:
        await asyncio.gather(*(release.put(node.host, node.slot.scratch) for node in (holder, target)))
        async with _key(target, name) as key, _lent(files, holder, name, key) as lent:
            taken = await _take(files, holder, target, name, lent, count)
    except SshError as error:
        raise NotDirectly(str(error)) from error
    if taken.reason in FATAL:
        raise End(Reason(taken.reason), f"{taken.text}{FATAL[taken.reason].format(target.name)}")
    if taken.reason:
        raise NotDirectly(f"node {target.name}: {taken.text}")


@asynccontextmanager
async def _key(target: Place, name: str) -> AsyncIterator[str]:
    """Make the taker's key; it goes again whatever becomes of the transfer."""
    place = _place(target, name)
    try:
        yield (await target.host.check(_argv(target, "fetch-key", place), seconds=SOON_SECONDS)).strip()
    finally:
        with suppress(SshError):  # what stays goes with the next transfer there, a day later
            for secret in ("key", "key.pub"):
                await target.host.remove(f"{place}/{secret}")
            await _give_back(target, place)


@asynccontextmanager
async def _lent(files: Sequence[File], holder: Place, name: str, key: str) -> AsyncIterator[Lent]:
    """Have the holder lend the files until the block ends."""
    place = _place(holder, name)
    names = tuple(file.name for file in files)
    loan = Loan(place=place, folder=holder.folder, names=names, address=holder.slot.address, key=key)
    try:
        yield Lent.model_validate_json(await _tell(holder, "lend", loan))
    finally:
        with suppress(SshError):  # it ends by itself, then
            await _give_back(holder, place)


async def _give_back(node: Place, place: str) -> None:
    """Have one side end, and wait a little until it has: nothing of a transfer stays behind."""
    if not await node.host.exists(place):
        return
    await node.host.put_text(f"{place}/done", "")
    for _ in range(GIVE_BACK_LOOKS):
        if not await node.host.exists(place):
            return
        await asyncio.sleep(GIVE_BACK_PAUSE)


async def _take(files: Sequence[File], holder: Place, target: Place, name: str, lent: Lent, count: Count) -> Taken:
    wanted = tuple(Wanted(name=f.name, size=f.size, sha256=f.sha256) for f in files)
    taking = Taking(
        place=_place(target, name), address=holder.slot.address, lent=lent, source=f"node {holder.name}",
        folder=target.folder, files=wanted,
    )  # fmt: skip
    share = count.share()
    await _tell(target, "fetch", taking)
    taken = await _end_of(target, taking.place, share)
    await share.reach(sum(file.size for file in files) if taken.reason is None else 0)
    return taken


async def _end_of(target: Place, place: str, share: Share) -> Taken:
    """Look on until the node says how it ended; raise NotDirectly where it says nothing any more."""
    said, since = "", time.monotonic()
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        if told := await _read(target, f"{place}/taken.json"):
            return Taken.model_validate_json(told)
        now = await _read(target, f"{place}/progress")
        if now and now != said:
            said, since = now, time.monotonic()
            await share.reach(int(now.split()[0]))
        if time.monotonic() - since > SILENT_SECONDS:
            raise NotDirectly(f"node {target.name} has not said for {SILENT_SECONDS:.0f} s how far it is")


async def _read(target: Place, path: str) -> str:
    try:
        return await target.host.read_text(path)
    except NotThere:
        return ""


async def _tell(place: Place, command: str, what: BaseModel) -> str:
    """Run a command that is told `what`; return the last line that it printed."""
    argv = _argv(place, command)
    done = await place.host.run(argv, input=what.model_dump_json().encode(), seconds=SOON_SECONDS)
    if done.code != 0:
        raise CommandFailed(place.name, command, (done.err or done.out).strip()[-300:])
    return done.out.strip().rpartition("\n")[2]


def _argv(place: Place, *words: str) -> tuple[str, ...]:
    return training_argv(place.slot, release.current().digest, *words)


def _place(place: Place, name: str) -> str:
    return str(Scratch(PurePosixPath(place.slot.scratch)).transfer(name))
