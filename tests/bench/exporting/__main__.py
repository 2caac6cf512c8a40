"""From shards to a model's files, four ways: python -m tests.bench.exporting [--rounds 3] [--only 0.55B]

A checkpoint of 0.55 billion parameters in fp32 and one of 2.0 billion in bf16, of two ranks, are made in place and
brought into one safetensors model: by our export (the whole command, from the start of the process until every file
is written, hashed and flushed; its proof is told apart), by accelerate's merge-weights, and by gathering on rank 0.
cp with sync copies the same bytes. Nothing is converted, so that all ways write as many bytes. Ours and cp take
turns; the slow ways run once. Memory is the peak resident memory of the process (VmHWM), pages of files included.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from .. import figures
from . import making, ways

TIMES_CP = 1.5
MOST_MEMORY = 700e6


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.exporting")
    parser.add_argument("--rounds", type=int, default=3, help="of ours and of cp")
    parser.add_argument("--only", choices=("0.55B", "2.0B"), help="one of the two sizes")
    parser.add_argument("--layers", type=int, help="fewer or more layers than the size has")
    parser.add_argument("--folder", type=Path, help="where to work (default: a temporary folder)")
    options = parser.parse_args(argv)
    sizes = [size for size in (making.SMALL, making.LARGE) if options.only in (None, size.name)]
    if options.layers:
        sizes = [dataclasses.replace(size, layers=options.layers) for size in sizes]
    holds = [_measured(size, options.rounds, options.folder) for size in sizes]
    return 0 if all(holds) else 1


def _measured(size: making.Size, rounds: int, place: Path | None) -> bool:
    with tempfile.TemporaryDirectory(prefix="shardboard-export-", dir=place) as name:
        folder = Path(name)
        gathered = making.make(folder, size, 1)
        ours, copied, loads = [], [], [figures.load()]
        for number in range(rounds):
            copied.append(ways.copied(folder))
            ours.append(ways.ours(folder, size, prove=number == 0))
            loads.append(figures.load())
        return _told(size, ways.size_of(folder), ours, copied, ways.merged(folder), gathered, loads)


def _told(
    size: making.Size,
    count: int,
    ours: Sequence[ways.Ours],
    copied: Sequence[float],
    merged: ways.Other,
    gathered: making.Gathered,
    loads: Sequence[float],
) -> bool:
    """Print the lines of one size; return whether its goals hold."""
    seconds = [run.seconds for run in ours]
    parts = ", ".join(
        f"{name} {_spread([getattr(run, name) for run in ours])} s" for name in ("start", "check", "stream")
    )
    proof = next(run.prove for run in ours if run.prove is not None)
    peak = max(run.peak for run in ours)
    share = statistics.median(seconds) / statistics.median(copied)
    fast, lean = share <= TIMES_CP, peak < MOST_MEMORY
    lines = [
        f"{size.name} parameters in {size.dtype}, {count / 1e9:.2f} GB in shards of {making.RANKS} ranks; load average"
        f" {figures.spread(loads, 1)}",
        f"  gathered on rank 0: {_spread(gathered.seconds)} s, {gathered.peak / 1e6:,.0f} MB with its own shard",
        f"  accelerate merge-weights: {merged.seconds:.2f} s, {merged.peak / 1e6:,.0f} MB",
        f"  cp and sync: {_spread(copied)} s, {count / statistics.median(copied) / 1e9:.2f} GB/s",
        f"  ours, phase by phase: {parts}",
        f"  our proof: {proof:.2f} s",
        f"  ours: {_spread(seconds)} s, {share:.2f} times cp; goal {TIMES_CP}: {_verdict(fast)}",
        f"  ours: {peak / 1e6:,.0f} MB; goal under {MOST_MEMORY / 1e6:.0f} MB: {_verdict(lean)}",
    ]
    print("\n".join(lines), flush=True)
    return fast and lean


def _spread(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.2f} ({figures.spread(values, 2)})"


def _verdict(holds: bool) -> str:
    return "holds" if holds else "falls short"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
