"""What being watched costs a step: python -m tests.bench.watch [--steps 200] [--block 5] [--length 256] [--batch 4]

One training of the tiny model on two ranks under its supervisor, of which --steps are watched and as many are not,
in alternating blocks (see tests.bench.watched). Watched: callbacks, meter, brake, journal, and the supervisor with
its sample a second. A block is set against its neighbour, so that what slows the machine slows both.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.training.launch import ROOT, Launch, recipe
from training.samples import tiny
from training.spec import envfile
from training.spec.job import Job
from training.spec.plan import NodePlan

from . import figures

GOAL_PERCENT = 1.0
STEPS_BEFORE = 8
WARM_UP, BLOCK = "BENCH_WARM_UP", "BENCH_BLOCK"  # steps, by environment
FIGURES = "figures.json"
RANKS = 2
SHOWN = 10.0  # microseconds
SUPERVISOR_GOAL = 5.0  # percent of one processor
Step = tuple[bool, float]


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.watch")
    parser.add_argument("--steps", type=int, default=200, help="steps watched, and as many not")
    parser.add_argument("--block", type=int, default=5, help="steps in a row that are watched or not")
    parser.add_argument("--length", type=int, default=256, help="tokens of a row")
    parser.add_argument("--batch", type=int, default=4, help="rows of a step and rank")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="shardboard-watch-") as folder:
        before = figures.load()
        found = trained(Path(folder), options)
        return told(found, options, [before, figures.load()])


def trained(root: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Train under a supervisor; return what the first rank saw."""
    model = root / "model"
    model.mkdir()
    tiny.build(model)
    launch = Launch(root / "run", model, "rows", nodes=1, processes=RANKS)
    write_rows(launch.scratch(0) / "datasets" / "rows", options)
    (plan,) = launch.plans(asked(options))
    put(plan, {WARM_UP: str(STEPS_BEFORE), BLOCK: str(options.block)})
    done = subprocess.run([sys.executable, "-m", "training", "supervise", str(plan.folder.path)], cwd=ROOT, check=True)
    assert done.returncode == 0
    place = Path(plan.folder.path) / FIGURES
    if not place.exists():
        sys.exit(Path(plan.folder.log).read_text()[-4000:])
    found: dict[str, Any] = json.loads(place.read_text())
    return found


def asked(options: argparse.Namespace) -> Any:
    how = {"max_steps": STEPS_BEFORE + 2 * options.steps + 1, "per_device_batch": options.batch}
    data = {"format": "text", "text_field": "text", "max_length": options.length}
    return recipe(optimisation=how, data=data, checkpoints={"every_steps": 1_000_000, "at_end": False})


def write_rows(folder: Path, options: argparse.Namespace) -> None:
    """Write rows that are all cut to the same length, so that all steps are alike."""
    folder.mkdir(parents=True)
    line = json.dumps({"text": " ".join(f"x{number} = {number * 7};" for number in range(options.length))}) + "\n"
    (folder / "train.jsonl").write_text(line * (RANKS * options.batch * 20))
    (folder / "test.jsonl").write_text(line)


def put(plan: NodePlan, settings: dict[str, str]) -> None:
    """Write the job's files, with our rank in the place of the trainer's."""
    folder = Path(plan.folder.path)
    folder.mkdir(parents=True)
    for name, text in plan.files.items():
        (folder / name).write_text(text)
    job = Job.model_validate_json(plan.files["job.json"])
    *launcher, _, _, words = job.argv
    argv = (*launcher, "tests.bench.watched", words)
    Path(plan.folder.job).write_text(job.model_copy(update={"argv": argv}).model_dump_json())
    env = Path(plan.folder.env)
    env.write_text(envfile.dump({**plan.env, **settings, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}))
    env.chmod(0o600)


def told(found: dict[str, Any], options: argparse.Namespace, loads: Sequence[float]) -> int:
    """Print the figures; return 0 where all goals hold."""
    steps: list[Step] = [(on, seconds) for on, seconds, _ in found["steps"]]
    plain, seen = ([seconds for on, seconds in steps if on == kind] for kind in (False, True))
    middle = statistics.median(plain)
    print(f"{len(seen)} steps watched, {len(plain)} not: {RANKS} ranks, each {options.batch} x {options.length} tokens")
    print(f"a step that is not watched: median {middle * 1e3:.1f} ms ({figures.spread([s * 1e3 for s in plain])})")
    print("in our callbacks on the first rank, with their waits for the other:", *spent(found["spent"], len(seen)))
    costs = overheads(steps, options.block)
    doubt = uncertainty(costs)
    sharp = doubt <= GOAL_PERCENT
    verdict = "sharp enough to tell: holds" if sharp else "too busy a machine to tell: falls short"
    pairs = f"{len(costs)} pairs of blocks, their median uncertain by {doubt:.2f} %"
    print(f"{pairs}; goal {GOAL_PERCENT:.2f} %: {verdict}")
    line, holds = figures.verdict("being watched", costs, GOAL_PERCENT, loads, unit="% of a step", digits=2)
    print(line)
    costs = overheads([(on, cpu) for on, _, cpu in found["steps"]], options.block)
    print(f"the first rank's processor time by the same pairs: median {statistics.median(costs):+.2f} %")
    processor = 100 * found["supervisor_seconds"] / sum(seen)
    line, light = figures.verdict("supervisor", [processor], SUPERVISOR_GOAL, loads, unit="% of a processor", digits=2)
    print(line)
    return 0 if holds and light and sharp else 1


def uncertainty(values: Sequence[float]) -> float:
    """Return the standard error of their median, had they a normal distribution as wide as their middle half."""
    low, _, high = statistics.quantiles(values, n=4)
    return 1.2533 * (high - low) / 1.349 / len(values) ** 0.5


def spent(seconds: dict[str, float], steps: int) -> list[str]:
    """Return the microseconds a step of each callback that takes more than a few, and of all together."""
    each = {name: value / steps * 1e6 for name, value in sorted(seconds.items(), key=lambda item: -item[1])}
    shown = [f"{name} {value:.0f}," for name, value in each.items() if value >= SHOWN]
    return [*shown, f"all {sum(each.values()):.0f} us a step"]


def overheads(steps: Sequence[Step], block: int) -> list[float]:
    """Return, for each pair of neighbouring blocks, by how many percent the watched one took longer."""
    costs = []
    for start in range(0, len(steps) - 2 * block + 1, 2 * block):
        pair = steps[start : start + 2 * block]
        seen, plain = (sum(seconds for on, seconds in pair if on == kind) for kind in (True, False))
        costs.append(100 * (seen / plain - 1))
    return costs


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
