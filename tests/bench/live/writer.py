"""What rank 0 of many runs writes: python -m tests.bench.live.writer SECONDS RATE SCRATCH SCRATCH RUN...

Of each run `RATE` lines of metrics a second, by training's own journal, each run at its own moment. Before, a line of
log for each of its two nodes; then it waits for a line on its input. Prints how late its last line was, in seconds.
"""

from __future__ import annotations

import heapq
import sys
import time
from pathlib import PurePosixPath

from tests.bench.following.writer import Job
from tests.bench.writer import metrics
from training.spec.events import Kind
from training.spec.folder import Scratch


def main(argv: list[str]) -> int:
    seconds, rate, *places = argv[:4]
    first, second = (Scratch(PurePosixPath(place)) for place in places)
    jobs = [(Job(first, int(run), 0), Job(second, int(run), 1))[0] for run in argv[4:]]
    sys.stdin.readline()
    print(write(jobs, float(seconds), 1 / float(rate)))
    return 0


def write(jobs: list[Job], seconds: float, tick: float) -> float:
    begun = time.time()
    due = [(begun + tick * (1 + number / len(jobs)), number) for number in range(len(jobs))]
    heapq.heapify(due)
    while due[0][0] <= begun + seconds:
        at, number = due[0]
        time.sleep(max(0.0, at - time.time()))
        job = jobs[number]
        job.step += 1
        job.events.emit(Kind.METRICS, job.step, **metrics(job.step))
        heapq.heapreplace(due, (at + tick, number))
    return time.time() - begun - seconds


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
