"""What the jobs of one node write: python -m tests.bench.following.writer SCRATCH RANK SECONDS RUN...

Of every run a sample of 8 GPUs a second, and on rank 0 a step a second with what the Trainer prints of it; each run at
its own moment of the second. Lines are those of the supervisor and of training, by their own journal. Before, it writes
a line of log for each job and waits for a line on its input. Prints how many lines that were.
"""

from __future__ import annotations

import heapq
import json
import random
import sys
import time
from pathlib import Path, PurePosixPath

from tests.bench.writer import metrics
from training.journal import Journal
from training.spec.events import Kind
from training.spec.folder import Scratch

GIB = 1 << 30
GPUS = 8


class Job:
    """One job's files."""

    def __init__(self, scratch: Scratch, run: int, rank: int):
        folder = scratch.job(run, 1, rank)
        Path(folder.path).mkdir(parents=True, exist_ok=True)
        self.rank, self.step, self.lines = rank, 0, 1
        self.events, self.samples = Journal(folder.events), Journal(folder.samples)
        self.log = Path(folder.log)
        self.log.write_text("ready\n", "utf-8")

    def tick(self) -> None:
        self.step += 1
        self.samples.emit(Kind.SAMPLE, **sample(self.step))
        self.lines += 1
        if self.rank == 0:
            figures = metrics(self.step)
            self.events.emit(Kind.METRICS, self.step, **figures)
            with self.log.open("a") as log:
                print({name: f"{value:.4g}" for name, value in figures.items()}, file=log)
            self.lines += 2


def sample(number: int) -> dict[str, object]:
    """Return the figures of a node of 8 A100-80GB, as the sampler gives them."""
    chance = random.Random(number)
    return {
        "ram_used": 300 * GIB + chance.randrange(GIB), "ram_total": 1024 * GIB,
        "disk_free": 900 * GIB + chance.randrange(GIB), "disk_total": 3584 * GIB,
        "cpu": round(chance.random(), 4), "load": 8.0 + chance.random(),
        "ranks": [{"rank": i, "rss": 20 * GIB + chance.randrange(GIB)} for i in range(GPUS)],
        "gpus": [
            {
                "index": i, "used": 70 * GIB + chance.randrange(GIB), "total": 80 * GIB, "load": chance.random(),
                "temperature": 60 + chance.randrange(20), "power": 300.0 + 100 * chance.random(),
            }
            for i in range(GPUS)
        ],
    }  # fmt: skip


def main(argv: list[str]) -> int:
    root, rank, seconds, *runs = argv
    jobs = [Job(Scratch(PurePosixPath(root)), int(run), int(rank)) for run in runs]
    sys.stdin.readline()
    begun = time.time()
    due = [(begun + number / len(jobs), number) for number in range(len(jobs))]
    heapq.heapify(due)
    while due[0][0] < begun + float(seconds):
        at, number = due[0]
        time.sleep(max(0.0, at - time.time()))
        jobs[number].tick()
        heapq.heapreplace(due, (at + 1.0, number))
    print(json.dumps({"lines": sum(job.lines for job in jobs), "late": time.time() - begun - float(seconds)}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
