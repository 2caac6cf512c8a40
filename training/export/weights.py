"""Tensors read from front to back, whatever for: the hash of each is taken on the way, and whether it is finite."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import prod

import torch

from .source import Source
from .stream import target_dtype
from .written import WrittenTensors

ROWS_OF = 1 << 22  # numbers in a block of rows


class Weights:
    """Tensors by the names they are stored under, in the same blocks whoever holds them.

    `read`: yields a tensor as consecutive rows, in blocks as they come. `most`: bytes that one tensor may take.
    """

    def __init__(
        self, read: Callable[[str], Iterable[torch.Tensor]], shapes: Mapping[str, tuple[int, ...]], most: int = 0
    ):
        self.read, self.shapes, self.most = read, shapes, most
        self.hashes: dict[str, str] = {}
        self.not_finite: set[str] = set()

    def blocks(self, name: str) -> Iterator[torch.Tensor]:
        """Yield blocks of the tensor's rows, all but the last of one size; one without rows as it is."""
        shape = self.shapes[name]
        rows = max(1, ROWS_OF // max(1, prod(shape[1:]))) if shape else 1
        digest = hashlib.sha256()
        for block in _regrouped(self.read(name), rows) if shape else self.read(name):
            digest.update(memoryview(block.contiguous().reshape(-1).view(torch.uint8).numpy()))
            if not finite(block):
                self.not_finite.add(name)
            yield block
        self.hashes[name] = digest.hexdigest()

    def whole(self, name: str) -> torch.Tensor:
        """Return all of a tensor; raise MemoryError where that is more than may be taken."""
        size = 4 * prod(self.shapes[name])
        if size > self.most:
            raise MemoryError(f"{name} is needed whole, which takes up to {size:,} bytes")
        blocks = list(self.blocks(name))
        return torch.cat(blocks) if self.shapes[name] else blocks[0]

    def finish(self) -> None:
        """Read whatever has not been read yet."""
        for name in self.shapes:
            if name not in self.hashes:
                for _ in self.blocks(name):
                    pass


def of_files(written: WrittenTensors, most: int = 0) -> Weights:
    """Return the tensors that were exported."""
    return Weights(written.blocks, {name: entry.shape for name, entry in written.tensors.items()}, most)


def of_source(source: Source, like: Weights, chosen: torch.dtype, most: int = 0) -> Weights:
    """Return the source's tensors of the same names and shapes, converted as the export converts them."""

    def read(name: str) -> Iterator[torch.Tensor]:
        dtype = target_dtype(source.tensors[name], chosen)
        return (block.to(dtype) for block in source.blocks(name))

    return Weights(read, like.shapes, most)


def finite(block: torch.Tensor) -> bool:
    """Tell whether every value is a number that is not infinite."""
    if not block.is_floating_point() or not block.numel():
        return True
    return all(bool(torch.isfinite(extreme)) for extreme in torch.aminmax(block))


def _regrouped(blocks: Iterable[torch.Tensor], rows: int) -> Iterator[torch.Tensor]:
    """Yield the same rows, `rows` at a time: torch may add up in another order where a block has another size."""
    held: list[torch.Tensor] = []
    count = 0
    for block in blocks:
        while len(block):
            taken = block[: rows - count]
            held.append(taken)
            count += len(taken)
            block = block[len(taken) :]
            if count == rows:
                yield torch.cat(held) if len(held) > 1 else held[0]
                held, count = [], 0
    if held:
        yield torch.cat(held)
