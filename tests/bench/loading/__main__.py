"""Four ways of loading, weighed and timed: python -m tests.bench.loading [--folder DIR] [--ranks 4]

A 1.1B-parameter Llama in bf16 on disk, fp32 masters, all ranks on this host, one way after the other. Memory is
unique set size, looked at every 50 ms. A way that would fill the host is ended, and its figures are lower bounds.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from training.loading.stored import stored_in

from .. import figures
from .watch import Weighed, weigh

GB = 1e9
# name: (recipe's fsdp.weights, accelerate's RAM-efficient loading)
WAYS = {
    "accelerate, RAM-efficient": ("accelerate", True),
    "accelerate, not RAM-efficient": ("accelerate", False),
    "ours by slices": ("slices", True),
    "ours from rank 0": ("broadcast", True),
}
THEIRS, OURS = list(WAYS)[:2], list(WAYS)[2:]
SLICES = OURS[0]


def main(argv: list[str]) -> int:
    """Print a line a way and a line a goal; return 0 where all goals hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.loading")
    parser.add_argument("--folder", type=Path, help="where the model is made, 2.2 GB (default: the temporary folder)")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--layers", type=int, default=22, help="fewer make a smaller model than the goals are for")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="shardboard-load-", dir=options.folder) as made:
        model = Path(made) / "model"
        subprocess.run([sys.executable, "-m", "tests.bench.loading.model", str(model), str(options.layers)], check=True)
        return measure(model, Path(made), options.ranks)


def measure(model: Path, folder: Path, ranks: int) -> int:
    seen, loads = {}, []
    for number, (name, (way, ram_efficient)) in enumerate(WAYS.items()):
        seen[name] = weigh(name, model, folder / str(number), ranks, way=way, ram_efficient=ram_efficient)
        loads.append(figures.load())
        print(row(seen[name]), flush=True)
    stored = stored_in(model).values()
    largest = max(one.row_bytes * one.shape[0] for one in stored)
    goals = [own_part(seen[name], largest, loads) for name in OURS]
    goals += [line for name in THEIRS for line in shares(seen[SLICES], seen[name], loads)]
    print(*(line for line, _ in goals), sep="\n")
    shutil.rmtree(model)
    return 0 if all(holds for _, holds in goals) else 1


def row(way: Weighed) -> str:
    over = "over " if way.cut else ""
    ranks = ", ".join(f"{peak / GB:.2f}" for peak in way.peaks)
    end = "; ended before the host was full: lower bounds" if way.cut else ""
    alone = max(way.alone) / GB
    return (
        f"{way.name}: peak unique memory by rank {over}{ranks} GB (the process alone {alone:.2f}),"
        f" together {over}{way.together / GB:.2f} GB, {over}{way.seconds:.1f} s{end}"
    )


def own_part(way: Weighed, largest: int, loads: list[float]) -> tuple[str, bool]:
    """Return the line of the rank that comes nearest to its limit, or farthest over it."""
    room = [one["shard"] + alone + 2 * largest for one, alone in zip(way.done, way.alone, strict=True)]
    worst = max(range(len(room)), key=lambda rank: way.peaks[rank] - room[rank])
    name = f"{way.name}, rank {worst} (goal: its shard, the process alone and two of the largest tensors)"
    return figures.verdict(name, [way.peaks[worst] / GB], room[worst] / GB, loads, unit="GB", digits=2)


def shares(way: Weighed, other: Weighed, loads: list[float]) -> list[tuple[str, bool]]:
    """Return the lines of memory together and of time, as shares of accelerate's."""
    whose = f"{way.name} as a share of {other.name}{', at most' if other.cut else ''}"
    memory, time = way.together / other.together, way.seconds / other.seconds
    return [
        figures.verdict(f"{whose}: memory together", [memory], 1 / 3, loads, unit="x", digits=2),
        figures.verdict(f"{whose}: time", [time], 1 / 4, loads, unit="x", digits=2),
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
