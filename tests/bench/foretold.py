"""An export's plan against the export: python -m tests.bench.foretold [--rounds 3] [--layers N]

A checkpoint of 0.55 billion parameters in fp32 and of two ranks is made in place, planned, and exported in bf16, proof
and all, a few times over. Bytes have to be as foretold to the last one. Time and peak memory (VmHWM of the process that
writes and of the one that proves, pages of files included) are a guess: within a factor is what is asked of them.
"""

from __future__ import annotations

import argparse
import dataclasses
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from training.spec.exportplan import ExportPlan
from training.spec.job import ExportJob

from . import figures
from .exporting import making, ways

FACTOR = 2.0
LOOK = 0.02


@dataclasses.dataclass(frozen=True)
class Ran:
    """Seconds of the whole command; peaks in bytes."""

    seconds: float
    stream: int
    prove: int


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.foretold")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--layers", type=int, help="fewer or more layers")
    parser.add_argument("--folder", type=Path, help="where to work (default: a temporary folder)")
    options = parser.parse_args(argv)
    size = dataclasses.replace(making.SMALL, layers=options.layers or making.SMALL.layers)
    with tempfile.TemporaryDirectory(prefix="shardboard-plan-", dir=options.folder) as name:
        folder = Path(name)
        making.make(folder, size, 0)
        job = ways.export_job(folder, dtype="bfloat16")
        plans, ran, loads = [], [], [figures.load()]
        for _ in range(options.rounds):
            plans.append(_plan(folder))
            ran.append(_run(folder, job))
            made = _weights(job)
            shutil.rmtree(folder / "out")
            loads.append(figures.load())
    return 0 if _told(plans, ran, made, loads) else 1


def _plan(folder: Path) -> ExportPlan:
    ways.settle(folder)
    command = [sys.executable, "-m", "training", "plan-export", str(folder / "job.json")]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return ExportPlan.model_validate_json(out.splitlines()[-1])


def _run(folder: Path, job: ExportJob) -> Ran:
    Path(job.events).unlink(missing_ok=True)
    ways.settle(folder)
    begun = time.monotonic()
    process = subprocess.Popen(ways.export_command(folder))
    stream = prove = 0
    while process.poll() is None:
        stream = max(stream, ways.highest(process.pid))
        prove = max([prove, *map(ways.highest, _children(process.pid))])
        time.sleep(LOOK)
    assert process.returncode == 0, ways.events(job)[-1]
    return Ran(time.monotonic() - begun, stream, prove)


def _children(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()]
    except OSError:
        return []


def _weights(job: ExportJob) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in Path(job.out).glob("*.safetensors")}


def _told(plans: Sequence[ExportPlan], ran: Sequence[Ran], made: dict[str, int], loads: Sequence[float]) -> bool:
    """Print the lines; return whether all goals hold."""
    exact = all({file.name: file.size for file in plan.writing.files} == made for plan in plans)
    print(f"load average {figures.spread(loads, 1)}; {sum(made.values()):,} bytes of weights")
    print(f"files and bytes as foretold: {exact}; goal exact: {'holds' if exact else 'falls short'}")
    pairs = {
        "time, s": ([plan.seconds.total for plan in plans], [run.seconds for run in ran], 1.0),
        "memory to write, MB": ([plan.memory.stream for plan in plans], [run.stream for run in ran], 1e6),
        "memory to prove, MB": ([plan.memory.prove for plan in plans], [run.prove for run in ran], 1e6),
    }
    return all([exact, *(_line(name, *pair) for name, pair in pairs.items())])


def _line(name: str, foretold: Sequence[float], happened: Sequence[float], unit: float) -> bool:
    ratio = statistics.median(foretold) / statistics.median(happened)
    holds = 1 / FACTOR <= ratio <= FACTOR
    said, was = (figures.spread([value / unit for value in values], 1) for values in (foretold, happened))
    goal = f"goal within a factor of {FACTOR:g}: {'holds' if holds else 'falls short'}"
    print(f"{name}: foretold {said}, was {was}; ratio {ratio:.2f}; {goal}")
    return holds


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
