"""An adapter merged into its base, a block of rows at a time: W + scale * (B A), in fp32.

https://arxiv.org/abs/2106.09685, section 4.1; with rank_stabilised the scale is https://arxiv.org/abs/2312.03732.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from .adapted import Adapter
from .base import WHOLE, Base
from .blueprint import Blueprint
from .outcome import refuse

BLOCK = 1 << 24  # numbers of a tensor in memory at a time: 64 MB in fp32


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

    def blocks(self, name: str) -> Iterator[torch.Tensor]:
        """Yield the tensor as consecutive blocks of rows: in fp32 where the adapter changes it, else as stored."""
        layers = self.adapter.layers
        if name in layers.whole:
            yield from self.adapter.checkpoint.blocks(layers.whole[name])
        elif name in layers.factors:
            yield from self._changed(name)
        else:
            yield from self._base(name)

    def _changed(self, name: str) -> Iterator[torch.Tensor]:
        left, right = self.adapter.factors(name)
        row = 0
        for block in self._base(name):
            yield block.float() + self.adapter.scale * (left[row : row + len(block)] @ right)
            row += len(block)

    def _base(self, name: str) -> Iterator[torch.Tensor]:
        shape = self.tensors[name].shape
        rows = shape[0] if shape else 1
        step = max(1, BLOCK * rows // max(1, torch.Size(shape).numel()))
        for row in range(0, rows, step):
            yield self.base.rows(self.stored_as[name], row, min(row + step, rows))


def _stored_names(base: Base, plan: Blueprint) -> dict[str, str]:
    """Return what the base's files call each tensor: its own name, or one that the config ties to it."""
    others = {kept: tied for tied, kept in plan.ties.items() if tied in base.tensors}
    found = {name: name if name in base.tensors else others.get(name, "") for name in plan.kept()}
    if missing := [name for name, stored in found.items() if not stored]:
        what = f"its files have no {missing[0]}" + (f", nor {len(missing) - 1} more" if len(missing) > 1 else "")
        raise refuse("model", what, WHOLE)
    return found
