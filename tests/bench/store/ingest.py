"""Points a second from bytes to rows, folding included."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.webapp.rows import World, make_world
from training.spec.events import COSTS, GPU_SAMPLED, SAMPLED, Event
from webapp.runs import actions
from webapp.runs.models import Stream
from workers.follow.folds import Folds
from workers.follow.ingest import store_all
from workers.follow.reader import Reader

from .. import figures

GOAL = 120_000  # points a second
RUNS = 100
ROUNDS = 7  # the first two fill up to where folding and merging go on
LINES = 120  # of each stream in a round
BLOCK = 60  # lines of a stream that are stored at once: what comes in while the store before is under way
GPUS = 8
METRICS = ("loss", "learning_rate", "grad_norm", *COSTS)


def measured(engine: str, folder: Path) -> int:
    world = make_world(folder)
    worst = 0
    for what, sources in (("metrics", ("train@0",)), ("metrics and samples", ("train@0", "node@0", "node@1"))):
        rates = _rates(world, sources)
        line, holds = _verdict(f"ingest of {what}, {engine}", rates[2:])
        print(line, flush=True)
        worst = max(worst, not holds)
    return worst


def _verdict(name: str, rates: list[float]) -> tuple[str, bool]:
    """As figures.verdict does it, for a figure that is to be high."""
    taken = [1e6 / rate for rate in rates]
    line, holds = figures.verdict(name, taken, 1e6 / GOAL, [figures.load()], unit="us a point", digits=2)
    return f"{line}; {sorted(rates)[len(rates) // 2]:,.0f} points/s, goal {GOAL:,}", holds


def _rates(world: World, sources: tuple[str, ...]) -> list[float]:
    streams = [stream for _ in range(RUNS) for stream in _streams(world, sources)]
    readers, folds, chance = [Reader(0) for _ in streams], Folds(), random.Random(6)
    rates = []
    for number in range(ROUNDS):
        points, blocks = _written(streams, number, chance)
        began = time.perf_counter()
        for block in blocks:
            _keep([(s, r.feed(raw)) for s, r, raw in zip(streams, readers, block, strict=True)], folds)
        rates.append(points / (time.perf_counter() - began))
    return rates


def _streams(world: World, sources: tuple[str, ...]) -> Iterator[Stream]:
    attempt = actions.launch(world.draft(), "bench")
    for source in sources:
        node = world.nodes[int(source[-1])]
        yield Stream.objects.create(attempt=attempt, node=node, source=source, path=f"/{source}")


def _keep(taken: list[Any], folds: Folds) -> None:
    """What the follower's Keeper does; of what is due, nothing is left for later."""
    before = [stream.last_seq for stream, _ in taken]
    store_all(taken)
    for (stream, _), seq in zip(taken, before, strict=True):
        folds.stored(stream, seq)
    while folds.due:
        folds.some()


def _written(streams: list[Stream], number: int, chance: random.Random) -> tuple[int, list[list[bytes]]]:
    """Return how many points a round is, and its bytes: of each block one piece a stream."""
    points, blocks = 0, []
    for first in range(number * LINES + 1, (number + 1) * LINES + 1, BLOCK):
        block = []
        for stream in streams:
            lines = [_line(stream.source, seq, chance) for seq in range(first, first + BLOCK)]
            points += sum(count for count, _ in lines)
            block.append("".join(line for _, line in lines).encode())
        blocks.append(block)
    return points, blocks


def _line(source: str, seq: int, chance: random.Random) -> tuple[int, str]:
    at = 1_700_000_000.0 + seq + chance.random() / 1000
    if source.startswith("train@"):
        data: dict[str, Any] = {name: chance.random() for name in METRICS}
        return len(data), Event(seq, at, "metrics", seq, data).line()
    gpus = [{"index": i, **{name: chance.randrange(10**9) for name in GPU_SAMPLED}} for i in range(GPUS)]
    data = {name: chance.random() * 1e9 for name in SAMPLED}
    return len(data) + GPUS * len(GPU_SAMPLED), Event(seq, at, "sample", None, data | {"gpus": gpus}).line()
