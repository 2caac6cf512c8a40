"""The queue's page: for each cluster what waits, in order, and what has which GPUs."""

from __future__ import annotations

from dataclasses import dataclass, field

from webapp.fleet.models import Cluster

from ..models import Pause, Run
from . import words
from .board import Board, board, pauses
from .plan import Seat, pool
from .waiting import Waiting, on_board


@dataclass(frozen=True)
class Row:
    """A waiting run. `asks`: 'all GPUs of 2 nodes'."""

    run: Run
    asks: str
    waiting: Waiting


@dataclass(frozen=True)
class Share:
    """GPUs of one node that one run has; `run` None: they are free, and `kept` for a run or for nobody."""

    gpus: list[int]
    run: Run | None = None
    kept: int | None = None


@dataclass(frozen=True)
class Bench:
    """A node with its GPUs, who has them in their order."""

    seat: Seat
    shares: list[Share] = field(default_factory=list)

    @property
    def free(self) -> int:
        return len(self.seat.free)


@dataclass(frozen=True)
class ClusterQueue:
    cluster: Cluster
    pauses: list[Pause]
    rows: list[Row]
    benches: list[Bench]

    @property
    def free(self) -> int:
        return sum(bench.free for bench in self.benches)

    @property
    def gpus(self) -> int:
        return sum(bench.seat.gpus for bench in self.benches)

    @property
    def unit(self) -> str:
        """Return what is counted there."""
        kinds = {"GPUs" if bench.seat.accelerator else "ranks" for bench in self.benches}
        return " and ".join(sorted(kinds)) or "GPUs"


def queues() -> list[ClusterQueue]:
    return [_of(cluster) for cluster in Cluster.objects.order_by("name")]


def _of(cluster: Cluster) -> ClusterQueue:
    found = board(cluster.pk)
    holders = {holder.run for seat in found.seats for holder in seat.held.values()}
    runs = Run.objects.in_bulk(holders)
    return ClusterQueue(cluster, pauses(cluster.pk), _rows(found), [_bench(seat, runs, found) for seat in found.seats])


def _rows(found: Board) -> list[Row]:
    rows = ((run, on_board(run, found)) for run in found.waiting)
    return [Row(run, words.asked(pool(run.wished(), found.seats)), told) for run, told in rows if told]


def _bench(seat: Seat, runs: dict[int, Run], found: Board) -> Bench:
    shares: list[Share] = []
    for gpu in range(seat.gpus):
        holder = seat.held.get(gpu)
        run = runs.get(holder.run) if holder else None
        kept = None if holder else found.promised.get((seat.key, gpu))
        if shares and (shares[-1].run, shares[-1].kept) == (run, kept):
            shares[-1].gpus.append(gpu)
        else:
            shares.append(Share([gpu], run, kept))
    return Bench(seat, shares)
