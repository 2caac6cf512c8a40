"""Real trainings of the tiny model, each made once, that several checks look at.

On one rank; FSDP1 on two where there are two GPUs. On one it shards nothing and torch writes no sharded checkpoint of
it, so the recipe refuses it, and here it trains by hand, without a save.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from tests.training.attempts import write_rows
from tests.training.launch import Launch, curve, of_kind, recipe
from training.samples import tiny
from training.spec.folder import JobFolder
from training.spec.job import TrainJob
from training.spec.plan import NodePlan, accelerate_yaml
from training.spec.recipe import Recipe, merge
from training.spec.sections.checkpoints import Checkpoints
from training.spec.sections.fsdp import Fsdp

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

    def __init__(self, root: Path, *, gpus: int, run: Callable[[list[NodePlan]], list[int]] | None = None):
        self.root = root
        self.gpus = gpus
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
                self._made[key] = self._resumed(asked) if resumed else self._train(self._launch(asked), asked)
            except Failed as failed:
                self._made[key] = failed
        made = self._made[key]
        if isinstance(made, Failed):
            raise made
        return made

    def ranks(self, version: int) -> int:
        """Return on how many ranks FSDP of this version trains here."""
        return 2 if version == 1 and self.gpus > 1 else 1

    def _launch(self, asked: dict[str, Any]) -> Launch:
        root, ranks = self.root / f"run{len(self._made)}", self.ranks(asked["fsdp"]["version"])
        launch = Launch(root, self.model, "rows", nodes=1, processes=ranks, accelerator=self.gpus > 0)
        write_rows(launch.scratch(0) / "datasets" / "rows")
        return launch

    def _resumed(self, asked: dict[str, Any]) -> Trained:
        unbroken = self.trained(**asked)
        launch = self._launch(asked)
        folder = launch.scratch(0) / "runs/1/1/checkpoints"
        folder.parent.mkdir(parents=True)
        folder.symlink_to(unbroken.checkpoints)
        return self._train(launch, asked, attempt=2, resume=(1, SAVED))

    def _train(self, launch: Launch, asked: dict[str, Any], **launched: Any) -> Trained:
        wanted = recipe(**merge({"optimisation": {"max_steps": STEPS}, "checkpoints": {"every_steps": SAVED}}, asked))
        alone = wanted.fsdp.version == launch.processes == 1
        plans = [fsdp1_alone(launch, wanted)] if alone else launch.plans(wanted, **launched)
        codes = (self._run or launch.run)(plans)
        if set(codes) != {0}:
            raise Failed(_why(plans[0].folder, codes))
        attempt = launched.get("attempt", 1)
        return Trained(plans[0].folder, launch.scratch(0) / f"runs/1/{attempt}/checkpoints")


def fsdp1_alone(launch: Launch, wanted: Recipe) -> NodePlan:
    """Return the plan of FSDP2 with FSDP1's settings laid in, and no save."""
    (plan,) = launch.plans(wanted.model_copy(update={"fsdp": Fsdp()}))
    unsaved = wanted.model_copy(update={"checkpoints": Checkpoints(every_steps=STEPS + 1, at_end=False)})
    job = TrainJob.model_validate_json(plan.files["recipe.json"]).model_copy(update={"recipe": unsaved})
    port = yaml.safe_load(plan.files["accelerate.yaml"])["main_process_port"]
    files = {"recipe.json": job.model_dump_json(), "accelerate.yaml": accelerate_yaml(wanted, [plan.node], 0, port)}
    return replace(plan, files={**plan.files, **files})


def _why(folder: JobFolder, codes: list[int]) -> str:
    """Return what a training that failed said last."""
    told = of_kind(folder, "finished") if Path(folder.events).exists() else []
    if told:
        return f"{told[0].data['reason']}: {told[0].data['text']}"
    lines = Path(folder.log).read_text(errors="replace").strip().splitlines()
    return f"exit {codes}: {lines[-1] if lines else 'nothing was said'}"
