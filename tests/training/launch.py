"""Real launches for tests: the plan's own files and argument lists, run on this machine without the service."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from training.spec import plan
from training.spec.events import Event, parse
from training.spec.folder import JobFolder
from training.spec.job import Job
from training.spec.lint import parse_recipe
from training.spec.plan import NodePlan, NodeSlot, Target, plan_attempt
from training.spec.ports import free_port
from training.spec.recipe import Recipe, merge

ROOT = Path(__file__).parents[2]
LIMIT = 300  # seconds; a launch takes about 30

SMALL = {
    "model": {"attention": "sdpa"},
    "data": {"max_length": 64},
    "optimisation": {"learning_rate": 1e-3, "warmup_ratio": 0.1, "per_device_batch": 2, "max_steps": 6},
    "precision": "fp32",
    "checkpoints": {"every_steps": 3, "keep": 2},
}


def recipe(**overrides: object) -> Recipe:
    return parse_recipe(merge(dict(SMALL), overrides))


@dataclass
class Launch:
    """One attempt on this machine: a folder per node where disks are private, one in all where shared."""

    root: Path
    model: Path
    dataset: str
    nodes: int = 2
    processes: int = 1
    shared: bool = False
    accelerator: bool = False
    env: dict[str, str] = field(default_factory=dict)

    def plans(self, recipe: Recipe, attempt: int = 1, resume: tuple[int, int] | None = None) -> list[NodePlan]:
        slots = [
            NodeSlot(
                f"n{n}", "127.0.0.1", sys.executable, str(self.scratch(n)), self.processes, accelerator=self.accelerator
            )
            for n in range(self.nodes)
        ]
        target = Target(str(self.model), self.dataset, has_test=True)
        port = free_port("127.0.0.1")
        return plan_attempt(recipe, target, slots, plan.Launch(1, attempt, port, "r", resume, self.env or {}))

    def scratch(self, node: int) -> Path:
        return self.root / ("scratch" if self.shared else f"node{node}")

    def run(self, plans: list[NodePlan], meanwhile: Callable[[list[NodePlan]], None] | None = None) -> list[int]:
        """Start all nodes' launchers, wait, return their exit statuses."""
        started = [self.start(plan) for plan in plans]
        try:
            if meanwhile:
                meanwhile(plans)
            return [process.wait(LIMIT) for process in started]
        finally:
            for process in started:
                process.terminate()  # a launcher ends its ranks on TERM; killed, it would leave them
                process.wait(60)

    def start(self, plan: NodePlan) -> subprocess.Popen[bytes]:
        folder = Path(plan.folder.path)
        folder.mkdir(parents=True)
        for name, text in plan.files.items():
            (folder / name).write_text(text)
        argv = Job.model_validate_json(plan.files["job.json"]).argv
        env = {**os.environ, **plan.env, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}
        with open(plan.folder.log, "wb") as log:
            return subprocess.Popen(argv, env=env, stdout=log, stderr=subprocess.STDOUT, cwd=folder)


def events(folder: JobFolder) -> list[Event]:
    """Return the lines a node wrote, having checked that their numbers are whole."""
    found = [parse(line) for line in Path(folder.events).read_bytes().splitlines()]
    assert [event.seq for event in found] == list(range(1, len(found) + 1))
    return found


def of_kind(folder: JobFolder, kind: str) -> list[Event]:
    return [event for event in events(folder) if event.kind == kind]


def curve(folder: JobFolder, names: Sequence[str] = ("loss", "grad_norm", "learning_rate")) -> dict[int, list[str]]:
    """Return the printed values of each step, for comparing to the last digit."""
    return {e.step or 0: [repr(e.data[name]) for name in names] for e in of_kind(folder, "metrics")}
