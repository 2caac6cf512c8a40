"""What a source hands to the export: a tensor's numbers in parts of a bounded size, loaded when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Protocol

import torch

if TYPE_CHECKING:
    from .shards.checked import Checked

BLOCK = 1 << 23  # bytes of a part; a few dozen of them are all that an export holds of a model


@dataclass(frozen=True)
class Raw:
    """Bytes of a file, as read, for its hash."""

    file: Checked
    start: int
    view: memoryview

    def feed(self) -> None:
        self.file.feed(self.start, self.view)


@dataclass(frozen=True)
class Loaded:
    """Numbers in a row, and the bytes they were made of as far as these have to be checked."""

    numbers: torch.Tensor
    raws: tuple[Raw, ...] = ()


@dataclass(frozen=True)
class Part:
    """`count` numbers of a tensor; `load` reads them, in any thread, into a buffer of bytes if that is of use to it."""

    count: int
    dtype: torch.dtype
    load: Callable[[torch.Tensor], Loaded]

    @property
    def bytes(self) -> int:
        return self.count * self.dtype.itemsize

    def now(self) -> torch.Tensor:
        """Return the numbers, in memory of their own."""
        return self.load(torch.empty(self.bytes, dtype=torch.uint8)).numbers


class Shaped(Protocol):
    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> torch.dtype: ...


def row_blocks(stored: Shaped, parts: Callable[[int], Iterator[Part]]) -> Iterator[torch.Tensor]:
    """Yield a tensor as blocks of rows of about BLOCK bytes, one row at least; one without rows as it is."""
    if not stored.shape:
        yield from (part.now().view(()) for part in parts(BLOCK))
        return
    row = prod(stored.shape[1:]) * stored.dtype.itemsize
    for part in parts(max(BLOCK, row)):
        yield part.now().view(-1, *stored.shape[1:])
