"""Real trainings of the tiny model on one rank, each made once, that several checks look at."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.training.attempts import write_rows
from tests.training.launch import Launch, curve, of_kind, recipe
from training.samples import tiny
from training.spec.folder import JobFolder
from training.spec.plan import NodePlan
from training.spec.recipe import merge

from .table import Failed

STEPS, SAVED = 6, 3


@dataclass(frozen=True)
class Trained:
    """A training that came to its end."""

    folder: JobFolder
    checkpoints: Path

    @property
    def started(self) -> dict[str, Any]:
        return of_kind(self.folder, "started")[0].data

    @property
    def curve(self) -> dict[int, list[str]]:
        return curve(self.folder)

    @property
    def losses(self) -> list[float]:
        return [float(loss) for loss, *_ in self.curve.values()]


class Bench:
    """Where the trainings lie: folders under `root`. `run` runs a launch's plans and returns the exit statuses."""

    def __init__(self, root: Path, *, accelerator: bool, run: Callable[[list[NodePlan]], list[int]] | None = None):
        self.root = root
        self.accelerator = accelerator
        self._run = run
        self._made: dict[str, Trained | Failed] = {}
        self.model = root / "model"
        self.model.mkdir(parents=True)
        tiny.build(self.model)

    def trained(self, *, resumed: bool = False, **asked: Any) -> Trained:
        """Train as asked, from the start or from the unbroken training's first checkpoint. Raises Failed."""
        key = json.dumps([resumed, asked], sort_keys=True)
        if key not in self._made:
            try:
                self._made[key] = self._resumed(asked) if resumed else self._train(self._launch(), asked)
            except Failed as failed:
                self._made[key] = failed
        made = self._made[key]
        if isinstance(made, Failed):
            raise made
        return made

    def _launch(self) -> Launch:
        launch = Launch(self.root / f"run{len(self._made)}", self.model, "rows", nodes=1, accelerator=self.accelerator)
        write_rows(launch.scratch(0) / "datasets" / "rows")
        return launch

    def _resumed(self, asked: dict[str, Any]) -> Trained:
        unbroken = self.trained(**asked)
        launch = self._launch()
        folder = launch.scratch(0) / "runs/1/1/checkpoints"
        folder.parent.mkdir(parents=True)
        folder.symlink_to(unbroken.checkpoints)
        return self._train(launch, asked, attempt=2, resume=(1, SAVED))

    def _train(self, launch: Launch, asked: dict[str, Any], **launched: Any) -> Trained:
        fixed = {"optimisation": {"max_steps": STEPS}, "checkpoints": {"every_steps": SAVED}}
        plans = launch.plans(recipe(**merge(fixed, asked)), **launched)
        codes = (self._run or launch.run)(plans)
        if set(codes) != {0}:
            raise Failed(_why(plans[0].folder, codes))
        attempt = launched.get("attempt", 1)
        return Trained(plans[0].folder, launch.scratch(0) / f"runs/1/{attempt}/checkpoints")


def _why(folder: JobFolder, codes: list[int]) -> str:
    """Return what a training that failed said last."""
    told = of_kind(folder, "finished") if Path(folder.events).exists() else []
    if told:
        return f"{told[0].data['reason']}: {told[0].data['text']}"
    lines = Path(folder.log).read_text(errors="replace").strip().splitlines()
    return f"exit {codes}: {lines[-1] if lines else 'nothing was said'}"
