"""How a queue looks outside."""

from __future__ import annotations

from datetime import datetime

from ninja import Schema

from webapp.runs.queue.show import Bench, ClusterQueue, Row

from .fleet import HeldOut


class PauseOut(Schema):
    """Who paused it, and why. `all`: every queue stands still, not this one alone."""

    by: str
    at: datetime
    why: str
    all: bool


class QueuedOut(Schema):
    """A waiting run. `place` 1 is next; `asks` and `text` in words; `runs` are in its way."""

    run: int
    name: str
    priority: int
    place: int
    asks: str
    text: str
    runs: list[int]

    @classmethod
    def of(cls, row: Row) -> QueuedOut:
        told, run = row.waiting, row.run
        return cls(
            run=run.pk,
            name=run.name,
            priority=run.priority,
            place=told.place,
            asks=row.asks,
            text=told.text,
            runs=list(told.runs),
        )


class BenchOut(Schema):
    """A node: `gpus` counts them, or its ranks where it has none; `out`: why nothing new is placed there."""

    name: str
    gpus: int
    accelerator: bool
    out: str
    free: list[int]
    held: list[HeldOut]

    @classmethod
    def of(cls, bench: Bench) -> BenchOut:
        seat = bench.seat
        held = [HeldOut(gpu=gpu, run=holder.run, since=holder.since) for gpu, holder in sorted(seat.held.items())]
        return cls(
            name=seat.name,
            gpus=seat.gpus,
            accelerator=seat.accelerator,
            out=seat.out,
            free=list(seat.free),
            held=held,
        )


class QueueOut(Schema):
    """One cluster's queue, its runs in their order, its nodes by name."""

    cluster: str
    pauses: list[PauseOut]
    waiting: list[QueuedOut]
    nodes: list[BenchOut]

    @classmethod
    def of(cls, queue: ClusterQueue) -> QueueOut:
        return cls(
            cluster=queue.cluster.name,
            pauses=[PauseOut(by=p.by, at=p.at, why=p.why, all=p.cluster_id is None) for p in queue.pauses],
            waiting=[QueuedOut.of(row) for row in queue.rows],
            nodes=[BenchOut.of(bench) for bench in queue.benches],
        )
