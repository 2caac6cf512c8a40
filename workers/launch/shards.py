"""Bring a checkpoint together: nodes with private disks each hold the shards that they wrote.

The manifests say which files there are; a place that lacks one gets it from a place that has it, streamed
through here, checked by its hash and then renamed. Manifests come last: they are the completeness markers.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
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


def source_of(checkpoint: Checkpoint) -> Source:
    attempt = checkpoint.attempt
    members = tuple(group.of_attempt(attempt))
    return Source(attempt.run_id, attempt.number, checkpoint.step, checkpoint.nodes, members)


async def bring_together(source: Source, targets: Sequence[Place]) -> None:
    """Give every target all files of the checkpoint. Raises End where a part is nowhere."""
    async with AsyncExitStack() as stack:
        hosts = await group.connect_all(source.members, stack)
        places = [Place(m.name, hosts[m.rank], str(source.folder_on(m.slot))) for m in source.members]
        try:
            for rank in range(source.nodes):
                await _bring_part(rank, places, targets)
        except NotThere as error:
            raise End(Reason.DATA, f"{error.node}: {error.why}; {ROTATED}") from error


async def _bring_part(rank: int, places: Sequence[Place], targets: Sequence[Place]) -> None:
    marker = manifest_name(rank)
    holder = await holder_of(marker, [*places[rank : rank + 1], *places])
    text = await holder.host.read_text(holder.path(marker))
    files = manifest_files(text, marker)
    for target in targets:
        for file in files:
            if await target.host.size(target.path(file.name)) != file.size:
                await _copy(file, holder, target)
        if not await target.host.exists(target.path(marker)):
            await target.host.put_text(target.path(marker), text)


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


async def _copy(file: File, holder: Place, target: Place) -> None:
    """Copy one file; a copy that isn't what was written is thrown away."""
    path = target.path(file.name)
    written = await target.host.write_stream(path, holder.host.read_range(holder.path(file.name)))
    if written != (file.size, file.sha256):
        await target.host.discard(path)
        raise End(
            Reason.DATA,
            f"{file.name} on node {holder.name} is not what was saved (its hash differs); choose another checkpoint",
        )
    await target.host.commit(path)
