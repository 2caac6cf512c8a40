"""PURE: a tensor cut into boxes that are each one run of numbers, in the result and in every stored piece.

A box has one index in its first dimensions, a range in the next one and everything of those behind it. What a
stored piece has of such a box is one run in that piece too, whichever dimensions the tensor was sharded by, so that
no more than a box has ever to be in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from math import prod

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Box:
    """Where it starts in the tensor, and its extent."""

    offset: Shape
    size: Shape

    @property
    def count(self) -> int:
        return prod(self.size)


def split(shape: Shape, most: int) -> Iterator[Box]:
    """Yield boxes of at most `most` numbers that follow each other in the tensor and make up all of it."""
    yield from _split(Box((0,) * len(shape), shape), most) if prod(shape) else ()


def _split(box: Box, most: int) -> Iterator[Box]:
    if box.count <= most:
        yield box
        return
    axis = next(i for i, extent in enumerate(box.size) if extent > 1)
    inner = prod(box.size[axis + 1 :])
    step = max(1, most // inner)
    for at in range(0, box.size[axis], step):
        part = _replaced(box, axis, box.offset[axis] + at, min(step, box.size[axis] - at))
        yield from _split(part, most)


def _replaced(box: Box, axis: int, offset: int, size: int) -> Box:
    offsets, sizes = list(box.offset), list(box.size)
    offsets[axis], sizes[axis] = offset, size
    return Box(tuple(offsets), tuple(sizes))


def overlap(a: Box, b: Box) -> Box | None:
    """Return what both hold."""
    low = tuple(map(max, a.offset, b.offset))
    ends = (min(x + m, y + n) for x, m, y, n in zip(a.offset, a.size, b.offset, b.size, strict=True))
    size = tuple(end - start for end, start in zip(ends, low, strict=True))
    return Box(low, size) if all(extent > 0 for extent in size) else None


def makes_up(parts: Iterable[Box], box: Box) -> bool:
    """Tell whether every number of `box` is in exactly one of `parts`, none of which is empty or goes beyond it."""
    ordered = sorted(parts, key=lambda part: part.offset)
    if sum(part.count for part in ordered) != box.count:
        return False
    for number, part in enumerate(ordered):
        for other in islice(ordered, number + 1, None):
            if other.offset[0] >= part.offset[0] + part.size[0]:
                break  # nor does any after it: shards of rows, the usual ones, are compared with their neighbour alone
            if overlap(part, other) is not None:
                return False
    return True


def before(inner: Box, outer: Box) -> int:
    """Return how many of `outer`'s numbers come before the first one of `inner`, which lies in it."""
    found = 0
    for start, begin, extent in zip(inner.offset, outer.offset, outer.size, strict=True):
        found = found * extent + start - begin
    return found


def within(inner: Box, outer: Box) -> tuple[slice, ...]:
    """Return the slices that select `inner` in a tensor of the shape of `outer`."""
    pairs = zip(inner.offset, outer.offset, inner.size, strict=True)
    return tuple(slice(start - begin, start - begin + extent) for start, begin, extent in pairs)


def is_run(inner: Box, outer: Box) -> bool:
    """Tell whether the numbers of `inner` follow each other in `outer` without a gap."""
    sizes = list(zip(inner.size, outer.size, strict=True))
    while sizes and sizes[-1][0] == sizes[-1][1]:
        sizes.pop()
    return all(extent == 1 for extent, _ in sizes[:-1])
