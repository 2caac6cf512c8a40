"""Which node has which part of a checkpoint. The manifests say it: each node writes its own last."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from training.spec.faults import Reason
from training.spec.folder import Scratch, manifest_name
from training.spec.plan import NodeSlot
from webapp.fleet.ssh import Host
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

    def place(self, member: Member, host: Host) -> Place:
        """Return the checkpoint's folder on a connected node, be it one that wrote it or not."""
        return Place(member.slot, host, str(self.folder_on(member.slot)))


@dataclass(frozen=True)
class Place:
    """A checkpoint's folder on a connected node."""

    slot: NodeSlot
    host: Host
    folder: str

    @property
    def name(self) -> str:
        return self.slot.name

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


def source_of(checkpoint: Checkpoint) -> Source:
    attempt = checkpoint.attempt
    members = tuple(group.of_attempt(attempt))
    return Source(attempt.run_id, attempt.number, checkpoint.step, checkpoint.nodes, members)


class Nowhere(End):
    """A part of a checkpoint is on none of the nodes that were asked."""


async def part(
    rank: int, own: Place | None, places: Sequence[Place], targets: Sequence[Place], only: tuple[str, ...]
) -> Part:
    """Return node `rank`'s part, of its files those that begin with one of `only`; raise Nowhere where it is gone.

    `own`: its own node, None where that is away.
    """
    marker = manifest_name(rank)
    holder = await holder_of(marker, [*([own] if own else []), *places])
    text = await holder.host.read_text(holder.path(marker))
    wanted = [file for file in manifest_files(text, marker) if file.name.startswith(only)]
    missing = [(t, file) for t in targets for file in wanted if await t.host.size(t.path(file.name)) != file.size]
    return Part(marker, text, holder, missing)


async def holder_of(marker: str, places: Sequence[Place]) -> Place:
    """Return the first place that has the part; give its own node first: others only have copies of it."""
    for place in places:
        if await place.host.exists(place.path(marker)):
            return place
    names = ", ".join(place.name for place in places)
    raise Nowhere(Reason.DATA, f"the checkpoint's {marker} is on none of its nodes ({names}); {ROTATED}")


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
