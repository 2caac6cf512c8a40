"""Carry a file from node to node through this service: where the two do not reach each other."""

from __future__ import annotations

from training.spec.faults import Reason

from ..end.ending import End
from .count import Count
from .parts import File, Place


async def carry(file: File, holder: Place, target: Place, count: Count) -> None:
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
