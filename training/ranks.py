"""What all ranks agree on: small flags and facts, over a gloo group of their own.

Its own group, so that asking never waits for work queued on a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import torch
import torch.distributed as dist

T = TypeVar("T")


class Ranks:
    """This rank's place among all. Make it on every rank at once, when the process group is up."""

    def __init__(self, node_rank: int, local_rank: int):
        self._group: Any = dist.new_group(backend="gloo")
        self.rank = dist.get_rank()
        self.world_size = dist.get_world_size()
        self.node_rank = node_rank
        self.is_main = self.rank == 0
        self.is_local_main = local_rank == 0
        self.nodes = len(set(self.gather(node_rank)))

    def gather(self, value: T) -> list[T]:
        """Return every rank's value, by rank. All ranks must call; all wait for the last."""
        values: list[Any] = [None] * self.world_size
        dist.all_gather_object(values, value, group=self._group)
        return values

    def any(self, flags: Sequence[bool]) -> list[bool]:
        """Return for each flag whether it is set on some rank. All ranks must call."""
        both = torch.tensor([int(flag) for flag in flags], dtype=torch.int32)
        dist.all_reduce(both, op=dist.ReduceOp.MAX, group=self._group)
        return [bool(flag) for flag in both.tolist()]
