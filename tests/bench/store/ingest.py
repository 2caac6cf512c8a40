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
from webapp.runs.levels import LOOSE
from webapp.runs.models import Stream
from workers.follow.folds import Folds
from workers.follow.ingest import store_all
from workers.follow.keeper import MOST
from workers.follow.reader import Reader

from .. import figures

GOAL = 120_000  # points a second
STREAMS = 100  # about so many, of whole runs
ROUNDS = 6
LINES = (
    MOST // STREAMS
)  # of each stream in a round, stored at once: so many wait with who is at the end of its strength
GPUS = 8
METRICS = ("loss", "learning_rate", "grad_norm", *COSTS)


def measured(engine: str, folder: Path) -> int:
    world = make_world(folder)
    worst = 0
    for what, sources in (("metrics", ("train@0",)), ("metrics and samples", ("train@0", "node@0", "node@1"))):
        feeds = [Feed(stream) for _ in range(STREAMS // len(sources)) for stream in _streams(world, sources)]
        line, holds = _verdict(f"ingest of {what}, {engine}", _rates(feeds))
        print(line, flush=True)
        worst = max(worst, not holds)
    return worst


def _verdict(name: str, rates: list[float]) -> tuple[str, bool]:
    """As figures.verdict does it, for a figure that is to be high."""
    taken = [1e6 / rate for rate in rates]
    line, holds = figures.verdict(name, taken, 1e6 / GOAL, [figures.load()], unit="us a point", digits=2)
    return f"{line}; {sorted(rates)[len(rates) // 2]:,.0f} points/s, goal {GOAL:,}", holds


class Feed:
    """A file of a node as it grows, and who reads it."""

    def __init__(self, stream: Stream) -> None:
        self.stream, self.reader, self._lines = stream, Reader(0), 0

    def written(self, chance: random.Random) -> tuple[int, bytes]:
        """Return how many points LINES more lines are, and their bytes."""
        first = self._lines + 1
        self._lines += LINES
        lines = [_line(self.stream.source, seq, chance) for seq in range(first, first + LINES)]
        return sum(count for count, _ in lines), "".join(line for _, line in lines).encode()


def _rates(feeds: list[Feed]) -> list[float]:
    folds, chance = Folds(), random.Random(6)
    for number in range(LOOSE):  # so that in each round then as many series have chunks to merge as in any other
        _rate(feeds[: len(feeds) * (number + 1) // LOOSE], folds, chance)
    return [_rate(feeds, folds, chance) for _ in range(ROUNDS)]


def _rate(feeds: list[Feed], folds: Folds, chance: random.Random) -> float:
    written = [feed.written(chance) for feed in feeds]
    began = time.perf_counter()
    _keep([(feed.stream, feed.reader.feed(raw)) for feed, (_, raw) in zip(feeds, written, strict=True)], folds)
    return sum(points for points, _ in written) / (time.perf_counter() - began)


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


def _line(source: str, seq: int, chance: random.Random) -> tuple[int, str]:
    at = 1_700_000_000.0 + seq + chance.random() / 1000
    if source.startswith("train@"):
        data: dict[str, Any] = {name: chance.random() for name in METRICS}
        return len(data), Event(seq, at, "metrics", seq, data).line()
    gpus = [{"index": i, **{name: chance.randrange(10**9) for name in GPU_SAMPLED}} for i in range(GPUS)]
    data = {name: chance.random() * 1e9 for name in SAMPLED}
    return len(data) + GPUS * len(GPU_SAMPLED), Event(seq, at, "sample", None, data | {"gpus": gpus}).line()
