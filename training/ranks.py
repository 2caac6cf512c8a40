"""What all ranks agree on: small flags and facts, over a gloo group of their own.

Its own group, so that asking never waits for work queued on a GPU.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist

T = TypeVar("T")
# Until the first step one rank may rightly work alone while all others wait for it: a download, hashing a checkpoint,
# tokenising, reading a large model from a slow disk. torch's own limit of 30 minutes would end the run for that. A
# rank that dies closes its connection and ends the others at once, whatever the limit.
LOADING_HOURS = 6.0


class Ranks:
    """This rank's place among all. Make it on every rank at once, when the process group is up.

    `hours`: how long one waits for another; None: torch's own limit.
    """

    def __init__(self, node_rank: int, local_rank: int, *, hours: float | None = None):
        self.group: Any = _group(None if hours is None else hours * 3600)
        self.rank = dist.get_rank()
        self.world_size = dist.get_world_size()
        self.node_rank = node_rank
        self.is_main = self.rank == 0
        self.is_local_main = local_rank == 0
        self.node_ranks = self.gather(node_rank)
        self.nodes = len(set(self.node_ranks))

    def apart(self, seconds: float | None = None) -> Ranks:
        """Return the same ranks with another group, for another thread or limit. All ranks must call."""
        self.gather(None)  # the limit holds for the group's making as well: all begin it together
        other = copy.copy(self)
        other.group = _group(seconds)
        return other

    @property
    def neighbours(self) -> list[int]:
        """The ranks of this node, this one among them."""
        return [rank for rank, node in enumerate(self.node_ranks) if node == self.node_rank]

    def gather(self, value: T) -> list[T]:
        """Return every rank's value, by rank. All ranks must call; all wait for the last."""
        values: list[Any] = [None] * self.world_size
        dist.all_gather_object(values, value, group=self.group)
        return values

    def any(self, flags: Sequence[bool]) -> list[bool]:
        """Return for each flag whether it is set on some rank. All ranks must call."""
        return self.ask(flags)()

    def ask(self, flags: Sequence[bool]) -> Callable[[], list[bool]]:
        """Ask as any() does, and return what waits for the answer: meanwhile there may be something to do."""
        both = torch.tensor([int(flag) for flag in flags], dtype=torch.int32)
        work = dist.all_reduce(both, op=dist.ReduceOp.MAX, group=self.group, async_op=True)

        def answer() -> list[bool]:
            work.wait()
            return [bool(flag) for flag in both.tolist()]

        return answer

    def missing(self, seconds: float) -> list[int]:
        """Return the ranks that did not come here within `seconds` of this one; empty: all did.

        The first rank knows who; the others know only that the first one did not answer, which they return.
        They wait as long as their group lets them: torch has no other limit for them.
        """
        try:
            dist.monitored_barrier(self.group, timeout=timedelta(seconds=seconds), wait_all_ranks=True)
        except RuntimeError as error:
            return _named(str(error)) if self.is_main else [0]
        return []

    def table(self, row: Sequence[float]) -> list[list[float]]:
        """Return every rank's row of numbers, by rank; all are of one length. All ranks must call."""
        mine = torch.tensor(row, dtype=torch.float64)
        rows = [torch.empty_like(mine) for _ in range(self.world_size)]
        dist.all_gather(rows, mine, group=self.group)  # a third of the time of gather(), which pickles
        return [[float(value) for value in found.tolist()] for found in rows]


def _group(seconds: float | None) -> Any:
    """Return a new group whose ranks wait `seconds` for each other; None: torch's own limit."""
    return dist.new_group(backend="gloo", timeout=None if seconds is None else timedelta(seconds=seconds))


def _named(text: str) -> list[int]:
    """Read the ranks out of `... Ranks 1, 3 failed to pass monitoredBarrier in 1000 ms`."""
    found = re.search(r"Ranks? ([\d, ]+) failed to pass", text)
    assert found, text
    return [int(number) for number in found[1].split(",")]
