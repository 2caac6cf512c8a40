"""Fine-tune by hand: `python -m training sft recipe.yaml`.

    python -m training preset smollm2-135m-demo > recipe.yaml      # then set model.name and data.train in it
    python -m training sft recipe.yaml --out runs                  # every GPU here, or two ranks on CPU
    python -m training sft recipe.yaml --out runs --resume latest
    python -m training sft recipe.yaml --nodes 10.0.0.11,10.0.0.12 --port 29500 --rank 0      # its own on each node

Paths in the recipe count from its own folder. What is wrong is refused first, each with field, reason and way out
(exit status 2). Then the job folder of a new attempt is made under --out, and the job runs in the foreground: its
log comes to the terminal, its figures go to events.jsonl and samples.jsonl. With export.at_end the last checkpoint
is exported then, on the first node. Ctrl-C or TERM: finish the step, save, end; a second one: end now. Exit status:
0 completed, or stopped with a save; else 1, and exit.json says why.

`accelerate launch` starts the ranks with the same word and the job's own recipe.json.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import get_args

from ..exitfile import Ending
from ..spec.faults import SENTENCES, Reason
from ..spec.lint import Refused
from ..spec.parts import FreshPart
from ..spec.plan import NodePlan


def main(argv: list[str]) -> int:
    """Be one rank where a launcher gives a job's recipe.json; else check, launch and wait."""
    if len(argv) == 1 and is_job(Path(argv[0])):
        from .. import leave, sft

        leave.leave(sft.main(argv))
    options = parser().parse_args(argv)
    try:
        return run(options)
    except Refused as refused:
        for problem in refused.problems:
            print(problem, file=sys.stderr)
        return 2


def is_job(path: Path) -> bool:
    """Tell whether `path` is spec.job.TrainJob, as the plan writes it: a recipe within where it runs."""
    try:
        body = json.loads(path.read_bytes()) if path.suffix == ".json" else None
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(body, dict) and "recipe" in body


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m training sft", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("recipe", type=Path, help="YAML or JSON; `python -m training schema` describes it")
    made.add_argument("--out", type=Path, help="folder for runs and checkpoints; without it: <recipe>.out, beside it")
    made.add_argument("--processes", type=int, help="ranks on this node; without it: one a GPU, or two on CPU")
    made.add_argument("--nodes", help="addresses of all nodes, first node first, with commas; without it: this one")
    made.add_argument("--rank", type=int, default=0, help="which of --nodes this is, from 0")
    made.add_argument("--port", type=int, help="free port on the first node; needed with --nodes")
    made.add_argument("--attempt", type=int, help="number of this attempt, the same on each node; without it: the next")
    made.add_argument("--resume", metavar="latest|STEP", help="go on from a complete checkpoint under --out")
    made.add_argument(
        "--fresh",
        action="append",
        choices=get_args(FreshPart),
        help="begin this part of the checkpoint anew; repeatable",
    )
    return made


def run(options: argparse.Namespace) -> int:
    """Check everything, launch, wait; return the exit status. Raises Refused before anything is touched."""
    from . import exporting, order

    found = order.planned(order.Wanted(**vars(options)))
    for text in found.skipped:
        print(f"not resumed from: {text}", file=sys.stderr)
    ending = shown(found.plan)
    if ending.reason == Reason.COMPLETED and found.plan.rank == 0 and found.recipe.export.at_end:
        ending = shown(exporting.planned(found.plan, order.RUN, found.attempt))
    return 0 if ending.reason.good else 1


def shown(plan: NodePlan) -> Ending:
    """Run a job in the foreground, saying where it lies and how it ends."""
    from . import foreground

    print(f"job folder: {plan.folder.path}", flush=True)
    ending = foreground.run(plan)
    print(f"{ending.reason}: {ending.text or SENTENCES[ending.reason]}", flush=True)
    return ending
