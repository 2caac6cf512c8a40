"""PURE: (nodes, waiting runs in their order) -> which GPUs each gets now, or what it waits for.

The rule, in docs/decisions/0027: runs are looked at in their order. One that fits on GPUs that are free, and that
nobody before it is promised, gets them. One that doesn't is promised the nodes where most of what it needs is free
already: what is free there stays free for it. So those behind only ever get what those before them can't use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from .wish import Wish

Gpus = tuple[int, ...]


@dataclass(frozen=True)
class Holder:
    """The run that has a GPU, and since when."""

    run: int
    since: datetime


@dataclass(frozen=True)
class Seat:
    """A node of the cluster. `gpus`: how many it has, or ranks without GPUs. `out`: why nothing new may start there."""

    key: int
    name: str
    gpus: int
    accelerator: bool = True
    labels: frozenset[str] = frozenset()
    out: str = ""
    held: Mapping[int, Holder] = field(default_factory=dict)

    @property
    def free(self) -> Gpus:
        return () if self.out else tuple(gpu for gpu in range(self.gpus) if gpu not in self.held)


@dataclass(frozen=True)
class Ask:
    """A waiting run. `paused`: why its queue stands still. `prefer`: nodes that hold what it goes on from.

    `avoid`: nodes that failed it, which it does without where others that are free can take their place.
    """

    run: int
    wish: Wish = field(default_factory=Wish)
    paused: str = ""
    rests_until: datetime | None = None
    prefer: frozenset[int] = frozenset()
    avoid: frozenset[int] = frozenset()


class Why(StrEnum):
    """What a run waits for: GPUs that others have, nodes that are out, the end of a pause, the end of its own rest."""

    GPUS = "gpus"
    NODES = "nodes"
    PAUSED = "paused"
    RESTS = "rests"


@dataclass(frozen=True)
class Block:
    """What stands in the way on one node: runs that hold it, runs before this one that it is kept for, or `out`."""

    node: str
    held: tuple[Holder, ...] = ()
    kept: tuple[int, ...] = ()
    out: str = ""


@dataclass(frozen=True)
class Placed:
    """The run can start: {node key: GPUs}, in the order of ranks."""

    gpus: dict[int, Gpus]


@dataclass(frozen=True)
class Waits:
    """The run can't start yet. `pool`: what it asks for; `text`: of a pause."""

    why: Why
    pool: Pool
    blocks: tuple[Block, ...] = ()
    text: str = ""
    until: datetime | None = None


Verdict = Placed | Waits


@dataclass(frozen=True)
class Pool:
    """The nodes on which a wish can be met, of which it needs `nodes`. `away`: others that would do, but for `out`.

    `small`: nodes that have too few GPUs for it.
    """

    nodes: int
    gpus: int | None
    seats: tuple[Seat, ...]
    away: tuple[Seat, ...] = ()
    small: tuple[Seat, ...] = ()

    def share(self, seat: Seat) -> int:
        """Return the GPUs that the run takes on a node."""
        return self.gpus or seat.gpus

    @property
    def enough(self) -> bool:
        return 0 < self.nodes <= len(self.seats)


def pool(wish: Wish, seats: Sequence[Seat]) -> Pool:
    """Return where `wish` can be met once nobody else is there. Nodes by name.

    A number of nodes is met by nodes of one kind: with GPUs before such without, and where whole nodes are asked
    for the largest of which there are enough.
    """
    fit = [s for s in seats if (not wish.on_nodes or s.name in wish.on_nodes) and s.labels.issuperset(wish.labels)]
    fit.sort(key=lambda seat: seat.name)
    small = tuple(s for s in fit if not s.out and s.gpus < (wish.gpus_per_node or 1))
    here = [s for s in fit if not s.out and s not in small]
    away = tuple(s for s in fit if s.out)
    if wish.nodes is None and not wish.on_nodes:  # all in service: none that is out is waited for
        return Pool(len(here) + len(small), wish.gpus_per_node, tuple(here), (), small)
    need = wish.nodes or len(wish.on_nodes)
    return Pool(need, wish.gpus_per_node, _of_one_kind(wish, need, here), away, small)


def _of_one_kind(wish: Wish, need: int, here: Sequence[Seat]) -> tuple[Seat, ...]:
    if wish.nodes is None:
        return tuple(here)

    def kind(seat: Seat) -> tuple[bool, int]:
        return seat.accelerator, 0 if wish.gpus_per_node else seat.gpus

    groups = [tuple(s for s in here if kind(s) == one) for one in sorted(set(map(kind, here)), reverse=True)]
    return next((group for group in groups if len(group) >= need), max(groups, key=len, default=()))


class Table:
    """What is free yet, while the runs are looked at one by one, and for whom the rest is kept.

    `kept`: {node key: runs}; `promised`: {(node key, GPU that is free): run}.
    """

    def __init__(self, seats: Sequence[Seat]):
        self.seats = seats
        self.free = {seat.key: seat.free for seat in seats}
        self.kept: dict[int, list[int]] = {seat.key: [] for seat in seats}
        self.promised: dict[tuple[int, int], int] = {}

    def look(self, ask: Ask) -> Verdict:
        found = pool(ask.wish, self.seats)
        if ask.paused:
            return Waits(Why.PAUSED, found, text=ask.paused)
        if ask.rests_until:
            return Waits(Why.RESTS, found, until=ask.rests_until)
        if not found.enough:  # keeps nothing: who waits for a node to come back must not hold up the others till then
            return Waits(Why.NODES, found, tuple(Block(seat.name, out=seat.out) for seat in found.away))
        found = self._spared(found, ask.avoid)
        chosen = self._choose(found, ask.prefer)
        lacking = [seat for seat in chosen if len(self.free[seat.key]) < found.share(seat)]
        blocks = tuple(self._block(seat) for seat in lacking)
        taken = {seat.key: self._take(seat, found.share(seat), ask.run) for seat in chosen}
        return Waits(Why.GPUS, found, blocks) if lacking else Placed(taken)

    def _spared(self, found: Pool, avoid: frozenset[int]) -> Pool:
        """Return the pool without the nodes to avoid, where enough of the others are free; else the pool as it is."""
        rest = replace(found, seats=tuple(seat for seat in found.seats if seat.key not in avoid))
        free = [seat for seat in rest.seats if len(self.free[seat.key]) >= found.share(seat)]
        return rest if avoid and len(free) >= found.nodes else found

    def _choose(self, found: Pool, prefer: frozenset[int]) -> list[Seat]:
        """Return the nodes where most of what the run needs is free; of equals those it prefers, then the fullest.

        That nobody waits for ever rests on this order: see docs/decisions/0027.
        """

        def order(seat: Seat) -> tuple[int, bool, int, str]:
            free = len(self.free[seat.key])
            return -min(free, found.share(seat)), seat.key not in prefer, free, seat.name

        return sorted(sorted(found.seats, key=order)[: found.nodes], key=lambda seat: seat.name)

    def _take(self, seat: Seat, count: int, run: int) -> Gpus:
        free = self.free[seat.key]
        self.free[seat.key] = free[count:]
        self.kept[seat.key].append(run)
        self.promised |= {(seat.key, gpu): run for gpu in free[:count]}
        return free[:count]

    def _block(self, seat: Seat) -> Block:
        held = {holder.run: holder for _, holder in sorted(seat.held.items())}
        return Block(seat.name, tuple(held.values()), tuple(self.kept[seat.key]))


def plan(seats: Sequence[Seat], asks: Sequence[Ask]) -> dict[int, Verdict]:
    """Return {run: verdict} for waiting runs of one cluster; `asks` in the order in which they come."""
    table = Table(seats)
    return {ask.run: table.look(ask) for ask in asks}
