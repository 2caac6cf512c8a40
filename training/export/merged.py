"""An adapter merged into its base, some rows at a time: W + scale * (B A), in fp32.

https://arxiv.org/abs/2106.09685, section 4.1; with rank_stabilised the scale is https://arxiv.org/abs/2312.03732.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch

from .adapted import Adapter
from .base import WHOLE, Base
from .blueprint import Blueprint
from .outcome import refuse
from .parts import BLOCK, Loaded, Part, row_blocks
from .shards.boxes import Box, before, split

Factors = tuple[torch.Tensor, torch.Tensor]


class Merged:
    """The tensors of a whole model: the base's, changed or replaced where the adapter says so."""

    def __init__(self, adapter: Adapter, base: Base, plan: Blueprint):
        self.adapter, self.base = adapter, base
        self.stored_as = _stored_names(base, plan)
        self.tensors = {name: base.tensors[self.stored_as[name]] for name in plan.kept()}
        for name, stored in self.tensors.items():
            if stored.shape != plan.shapes[name]:
                what = f"{name} is {list(stored.shape)} in its files and {list(plan.shapes[name])} by its config"
                raise refuse("model", what, WHOLE)

    def parts(self, name: str, most: int = BLOCK) -> Iterator[Part]:
        """Yield the tensor's numbers as consecutive parts: in fp32 where the adapter changes it, else as stored."""
        layers = self.adapter.layers
        if name in layers.whole:
            yield from self.adapter.checkpoint.parts(layers.whole[name], most)
        elif name in layers.factors:
            yield from self._changed(name, most)
        else:
            stored = self.tensors[name]
            for box in split(stored.shape, max(1, most // stored.dtype.itemsize)):
                start = before(box, Box((0,) * len(stored.shape), stored.shape))
                yield Part(box.count, stored.dtype, partial(self._base, name, start, box.count))

    def blocks(self, name: str) -> Iterator[torch.Tensor]:
        """Yield the tensor as consecutive blocks of rows."""
        return row_blocks(self.tensors[name], partial(self.parts, name))

    def _changed(self, name: str, most: int) -> Iterator[Part]:
        rows, columns = self.tensors[name].shape
        factors = self.adapter.factors(name)
        step = max(1, most // columns // torch.float32.itemsize)
        for row in range(0, rows, step):
            stop = min(row + step, rows)
            load = partial(self._sum, name, row, stop, factors)
            yield Part((stop - row) * columns, self.tensors[name].dtype, load)

    def _sum(self, name: str, row: int, stop: int, factors: Factors, buffer: torch.Tensor) -> Loaded:
        left, right = factors
        columns = right.shape[1]
        added = self.adapter.scale * (left[row:stop] @ right)
        base = self._base(name, row * columns, (stop - row) * columns, buffer).numbers
        return Loaded(base.float() + added.view(-1))

    def _base(self, name: str, start: int, count: int, buffer: torch.Tensor) -> Loaded:
        return Loaded(self.base.numbers(self.stored_as[name], start, count, buffer))


def _stored_names(base: Base, plan: Blueprint) -> dict[str, str]:
    """Return what the base's files call each tensor: its own name, or one that the config ties to it."""
    others = {kept: tied for tied, kept in plan.ties.items() if tied in base.tensors}
    found = {name: name if name in base.tensors else others.get(name, "") for name in plan.kept()}
    if missing := [name for name, stored in found.items() if not stored]:
        what = f"its files have no {missing[0]}" + (f", nor {len(missing) - 1} more" if len(missing) > 1 else "")
        raise refuse("model", what, WHOLE)
    return found
