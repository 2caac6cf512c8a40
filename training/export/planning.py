"""`python -m training plan-export JOB.json`: say what the export will be, and why not, without writing a file.

The last line is a spec.exportplan.ExportPlan as JSON; with --text the same as a table for people.
Exit status: 0 where the export can work, 1 where it can't, 2 where the file says nothing to plan.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from ..spec.exportplan import ExportPlan, Finding, Rates, Seconds
from ..spec.faults import Reason
from ..spec.job import ExportJob, PlanJob
from ..spec.jobfile import read_job
from ..spec.lint import Problem, Refused
from . import foresee, place
from .outcome import reason_of
from .probe import existing, rates
from .sheets import text

T = TypeVar("T")


def main(argv: list[str]) -> int:
    """Plan the export that the file argv[0] describes."""
    options = _parser().parse_args(argv)
    try:
        asked = _asked(options.job)
    except (OSError, Refused) as error:
        print(f"{options.job}: {error}", file=sys.stderr)
        return 2
    os.environ.update(asked.env)
    plan = Planner(asked.job, asked.coming, probe=not options.no_probe).plan()
    print(text(plan) if options.text else plan.model_dump_json())
    return 0 if plan.works else 1


def _asked(path: Path) -> PlanJob:
    if str(path) == "-":
        return read_job(PlanJob, sys.stdin.buffer.read())
    return PlanJob(job=read_job(ExportJob, path.read_bytes()))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m training plan-export", description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "job", type=Path, help="JSON file as for export, see export --help; -: a spec.job.PlanJob on stdin"
    )
    parser.add_argument("--text", action="store_true", help="a table in place of JSON")
    parser.add_argument("--no-probe", action="store_true", help="leave the disk in peace: no estimate of time")
    return parser


class Planner:
    """Gathers every reason before it gives up: `problems` grows while the plan is made."""

    def __init__(self, job: ExportJob, coming: Mapping[str, int] | None = None, *, probe: bool = True):
        self.job, self.coming, self.probe = job, dict(coming or {}), probe
        self.problems: list[Finding] = []
        self.begin = time.monotonic()

    def plan(self) -> ExportPlan:
        """Return the plan; whatever can't work is in its problems."""
        out, folder = Path(self.job.out), Path(self.job.checkpoint)
        self._try(lambda: place.check(out))
        seen = self._look(folder)
        speed = rates(existing(out.parent), _largest(folder, seen)) if self.probe and seen else Rates()
        plan = ExportPlan(rates=speed)
        if seen and seen.trusted:
            plan = self._try(lambda: self._assembled(seen, speed)) or plan
        return plan.model_copy(update={"problems": tuple(self.problems) + plan.problems})

    def _look(self, folder: Path) -> foresee.Seen | None:
        found: list[Problem] = []
        seen = self._try(lambda: foresee.look(folder, self.coming, found))
        self.problems += [finding(problem, Reason.DATA) for problem in found]
        return seen

    def _assembled(self, seen: foresee.Seen, speed: Rates) -> ExportPlan:
        from .estimate import Estimate  # torch and transformers take seconds to import

        estimate = Estimate(self.job, seen)
        startup = time.monotonic() - self.begin
        plan = estimate.plan()
        seconds = estimate.seconds(plan, speed, startup) if speed.read and speed.write else Seconds()
        return plan.model_copy(update={"rates": speed, "seconds": seconds})

    def _try(self, ask: Callable[[], T]) -> T | None:
        """Return the answer; None where it was refused, with its reasons among the problems."""
        try:
            return ask()
        except Refused as refused:
            reason = reason_of(refused) or Reason.CONFIGURATION
            self.problems += [finding(problem, reason) for problem in refused.problems]
        return None


def finding(problem: Problem, reason: Reason) -> Finding:
    return Finding(field=problem.field, why=problem.reason, fix=problem.fix, reason=reason)


def _largest(folder: Path, seen: foresee.Seen) -> Path | None:
    """Return the largest file of the checkpoint that is here."""
    here: Sequence[Path] = [folder / name for name in seen.files if (folder / name).is_file()]
    return max(here, key=lambda path: path.stat().st_size, default=None)
