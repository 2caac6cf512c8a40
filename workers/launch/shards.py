"""Bring a checkpoint together: nodes with private disks each hold the shards that they wrote.

The manifests say which files there are; a place that lacks one gets it from a place that has it, streamed
through here, checked by its hash and then renamed. Manifests come last: they are the completeness markers.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import PurePosixPath

from training.spec.faults import Reason
from training.spec.folder import Scratch, manifest_name
from training.spec.plan import NodeSlot
from webapp.fleet.ssh import Host, NotThere
from webapp.runs.models import Checkpoint

from .. import group
from ..end.ending import End
from ..group import Member

Tell = Callable[[int, int], Awaitable[None]]
ROTATED = "the checkpoint was probably rotated away; choose a newer one"


@dataclass(frozen=True)
class Source:
    """Where a checkpoint was written: on these nodes, each with a part."""

    run: int
    attempt: int
    step: int
    nodes: int
    members: tuple[Member, ...]

    def folder_on(self, slot: NodeSlot) -> PurePosixPath:
        return Scratch(PurePosixPath(slot.scratch)).checkpoint(self.run, self.attempt, self.step)


@dataclass(frozen=True)
class Place:
    """A checkpoint's folder on a connected node."""

    name: str
    host: Host
    folder: str

    def path(self, name: str) -> str:
        return f"{self.folder}/{name}"


@dataclass(frozen=True)
class File:
    """One file of a checkpoint. `name` is relative to its folder; size in bytes."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Part:
    """What one node wrote: its manifest's name and text, who has it, and which target lacks which file."""

    marker: str
    text: str
    holder: Place
    missing: list[tuple[Place, File]]


class Count:
    """Bytes brought so far, told about once a second."""

    def __init__(self, total: int, tell: Tell | None):
        self.total, self.tell, self.done, self.said = total, tell, 0, -math.inf

    async def through(self, blocks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for block in blocks:
            self.done += len(block)
            if self.tell and (time.monotonic() - self.said >= 1 or self.done >= self.total):
                self.said = time.monotonic()
                await self.tell(self.done, self.total)
            yield block


def source_of(checkpoint: Checkpoint) -> Source:
    attempt = checkpoint.attempt
    members = tuple(group.of_attempt(attempt))
    return Source(attempt.run_id, attempt.number, checkpoint.step, checkpoint.nodes, members)


async def bring_together(
    source: Source, targets: Sequence[Place], *, only: tuple[str, ...] = ("",), tell: Tell | None = None
) -> None:
    """Give every target the checkpoint's files whose names begin with one of `only`, and all manifests.

    `tell` is told of bytes, how many are there and how many there are to be. Raises End where a part is nowhere.
    """
    async with AsyncExitStack() as stack:
        hosts = await group.connect_all(source.members, stack)
        places = [Place(m.name, hosts[m.rank], str(source.folder_on(m.slot))) for m in source.members]
        try:
            parts = [await _part(rank, places, targets, only) for rank in range(source.nodes)]
            count = Count(sum(file.size for part in parts for _, file in part.missing), tell)
            for part in parts:
                await _bring(part, targets, count)
        except NotThere as error:
            raise End(Reason.DATA, f"{error.node}: {error.why}; {ROTATED}") from error


async def _part(rank: int, places: Sequence[Place], targets: Sequence[Place], only: tuple[str, ...]) -> Part:
    marker = manifest_name(rank)
    holder = await holder_of(marker, [*places[rank : rank + 1], *places])
    text = await holder.host.read_text(holder.path(marker))
    wanted = [file for file in manifest_files(text, marker) if file.name.startswith(only)]
    missing = [(t, file) for t in targets for file in wanted if await t.host.size(t.path(file.name)) != file.size]
    return Part(marker, text, holder, missing)


async def _bring(part: Part, targets: Sequence[Place], count: Count) -> None:
    for target, file in part.missing:
        await _copy(file, part.holder, target, count)
    for target in targets:
        if not await target.host.exists(target.path(part.marker)):
            await target.host.put_text(target.path(part.marker), part.text)


async def holder_of(marker: str, places: Sequence[Place]) -> Place:
    """Return the first place that has the part; give its own node first: others only have copies of it."""
    for place in places:
        if await place.host.exists(place.path(marker)):
            return place
    names = ", ".join(place.name for place in places)
    raise End(Reason.DATA, f"the checkpoint's {marker} is on none of its nodes ({names}); {ROTATED}")


def manifest_files(text: str, marker: str) -> list[File]:
    """Return the files that a manifest names; raise End where it is damaged or names a file outside."""
    try:
        raw = json.loads(text)["files"]
        files = [File(str(name), int(facts["size"]), str(facts["sha256"])) for name, facts in raw.items()]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise End(Reason.DATA, f"the checkpoint's {marker} is damaged ({error}); choose another checkpoint") from error
    for file in files:
        parts = PurePosixPath(file.name).parts
        if not parts or ".." in parts or PurePosixPath(file.name).is_absolute():
            raise End(Reason.DATA, f"the checkpoint's {marker} names {file.name!r}, which is outside of it")
    return files


async def _copy(file: File, holder: Place, target: Place, count: Count) -> None:
    """Copy one file; a copy that isn't what was written is thrown away."""
    path = target.path(file.name)
    written = await target.host.write_stream(path, count.through(holder.host.read_range(holder.path(file.name))))
    if written != (file.size, file.sha256):
        await target.host.discard(path)
        raise End(
            Reason.DATA,
            f"{file.name} on node {holder.name} is not what was saved (its hash differs); choose another checkpoint",
        )
    await target.host.commit(path)
