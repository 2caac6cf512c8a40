"""What ranks would write, at a steady pace: started by the supervisor in the place of `accelerate launch`.

A node's interpreter (see place.py) runs this file with that command's arguments, the job's recipe last. It says
`started`, waits for the file `go` in the job's folder, writes a `metrics` line at every tick, each with the time
at which it was written, prints beside it what the Trainer prints, and ends as completed.
"""

from __future__ import annotations

import math
import sys
import time
from pathlib import Path

from training.journal import Journal
from training.spec.events import Kind
from training.spec.job import TrainJob

GO = "go"
TICK = 0.1  # seconds between two lines
LOOK = 0.02


def main() -> int:
    recipe = Path(sys.argv[-1])
    job = TrainJob.model_validate_json(recipe.read_text("utf-8"))
    steps = job.recipe.optimisation.max_steps
    journal = Journal(job.events)
    facts = {"parameters": 0, "trainable": 0, "attention": "sdpa", "master_dtype": "float32", "resumed_from": None}
    journal.emit(Kind.STARTED, 0, world_size=job.nodes, nodes=job.nodes, total_steps=steps, **facts)
    while not (recipe.parent / GO).exists():
        time.sleep(LOOK)
    write(journal, steps)
    journal.emit(Kind.FINISHED, steps, reason="completed")
    return 0


def write(journal: Journal, steps: int) -> None:
    """Write one line a tick: a late one doesn't put off those behind it."""
    begun = time.monotonic()
    for step in range(1, steps + 1):
        time.sleep(max(0.0, begun + step * TICK - time.monotonic()))
        figures = metrics(step)
        journal.emit(Kind.METRICS, step, **figures)
        print({name: f"{value:.4g}" for name, value in figures.items()}, flush=True)


def metrics(step: int) -> dict[str, float]:
    """Return the figures that a step of real training reports, under the same names."""
    loss = 2.0 + 6.0 * math.exp(-step / 60) + 0.1 * math.sin(step)
    return {
        "loss": loss, "grad_norm": 1.0 + loss / 10, "learning_rate": 1e-3 / step, "entropy": loss,
        "mean_token_accuracy": 1 / loss, "num_tokens": 512.0 * step, "epoch": step / 1000,
        "step_seconds": TICK, "tokens_per_second": 512 / TICK,
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
