"""What a resume will have to bring from node to node, told before it is asked for."""

from __future__ import annotations

from webapp.show import size

from ..models import Checkpoint
from .places import SHARED, Place, disk, places


def foretold(checkpoint: Checkpoint) -> str:
    """Return one sentence on the bytes that the nodes which wrote it lack of it; empty where they lack none."""
    writers = [place for place in places(checkpoint) if place.ranks]
    lacking = {place.name: _lacks(place, writers) for place in writers}
    if not any(lacking.values()) or disk(writers, checkpoint.nodes) == SHARED:
        return ""
    texts = [f"{size(count)} to {name}" for name, count in lacking.items() if count]
    return f"A resume first brings its shards together from private disks, with their hashes: {', '.join(texts)}."


def _lacks(place: Place, writers: list[Place]) -> int:
    """Return the bytes of the others' parts that do not lie on `place`, as far as it has been asked."""
    there = set(place.copy.parts or ()) if place.copy else set()
    return sum(other.written for other in writers if other is not place and not set(other.ranks) <= there)
