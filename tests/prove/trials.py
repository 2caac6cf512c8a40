"""A run that is killed and goes on, beside the same run unbroken."""

from __future__ import annotations

import json
import random
import shutil
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

from tests.training import folders, ranks_harness
from tests.training.attempts import write_rows
from tests.training.launch import Launch, curve, of_kind, recipe
from training.saving import checkpoints
from training.spec.folder import JobFolder
from training.spec.job import TrainJob
from training.spec.plan import NodePlan

from .watched import Kill, main, rows_of

FIGURES = ("loss", "grad_norm", "learning_rate", "num_tokens", "epoch", "entropy", "mean_token_accuracy")
STEPS, EVERY = 12, 3
EVALUATES = 5  # the save at 9 goes by the evaluation at 5, which a run that goes on from 6 has from its checkpoint
FIRST = 2 * EVERY  # from its second save on, a run has a complete checkpoint for sure
SAVES = range(FIRST, STEPS + 1, EVERY)
# Where a save can be torn: shards of the model or optimizer, their indexes, the small files, and the marker itself.
TEARS = {
    0: ("pytorch_model_fsdp_0/__0_0.distcp", "pytorch_model_fsdp_0/.metadata.tmp", "optimizer_0/__0_0.distcp",
        "optimizer_0/.metadata.tmp", "scheduler.pt", "progress.json", "manifest-0.tmp"),
    1: ("pytorch_model_fsdp_0/__1_0.distcp", "optimizer_0/__1_0.distcp", "rng_state_1.pth", "window_1.json"),
}  # fmt: skip


def draw(seed: int) -> Kill:
    """Return the kill of one trial: even seeds in a step, odd ones in the middle of a save."""
    dice = random.Random(seed)
    rank = dice.randrange(2)
    if seed % 2:
        return Kill(rank, dice.choice(SAVES), dice.choice(TEARS[rank]))
    return Kill(rank, dice.randrange(FIRST + 1, STEPS + 1))


@dataclass(frozen=True)
class Outcome:
    """What a trial saw. `differs`: each figure or row that is not the unbroken run's, in words."""

    kill: Kill
    asynchronous: bool
    went_on_from: int
    skipped: list[str]
    differs: list[str]


class Trials:
    """Trials in folders under `root`. Dropout is on, so that random numbers count; lines come every second step."""

    def __init__(self, root: Path):
        self.root = root

    @cached_property
    def model(self) -> Path:
        from training.samples import tiny

        folder = self.root / "model"
        folder.mkdir()
        tiny.build(folder)
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | {"attention_dropout": 0.1}))
        return folder

    @cached_property
    def unbroken(self) -> JobFolder:
        return self._ended(self._plans("unbroken", 1, asynchronous=False))

    def trial(self, seed: int) -> Outcome:
        """Kill a run as `seed` says, go on from its newest complete checkpoint, compare."""
        kill, asynchronous, name = draw(seed), seed % 4 > 1, f"trial-{seed}"
        killed = self._plans(name, 1, asynchronous=asynchronous)
        self._killed(killed, kill)
        roots = checkpoints_of(killed[0])
        torn = torn_in(roots)
        head = self._ended([going_on(plan, roots) for plan in self._plans(name, 2, asynchronous=asynchronous)])
        (resumed,) = of_kind(head, "resumed")
        step = resumed.step or 0
        differs = [f"{part} was {fate}" for part, fate in resumed.data["parts"].items() if fate != "restored"]
        skipped = sorted(one["name"] for one in resumed.data["skipped"])
        differs += [f"skipped {skipped}, torn were {torn}"] if skipped != torn else []
        differs += self._differences(head, step)
        shutil.rmtree(self.root / name)
        return Outcome(kill, asynchronous, step, skipped, differs)

    def _differences(self, head: JobFolder, step: int) -> list[str]:
        whole, part = curve(self.unbroken, FIGURES), curve(head, FIGURES)
        due = [at for at in whole if at > step]
        found = [f"step {at}: {part.get(at)}, not {whole[at]}" for at in due if part.get(at) != whole[at]]
        rows, again = rows_of(Path(self.unbroken.path)), rows_of(Path(head.path))
        if again != {place: ids for place, ids in rows.items() if place[0] > step}:
            found.append("rows of a batch differ")
        known = metrics_of(head)
        found += [f"{at} knows {known.get(at)}, not {was}" for at, was in metrics_of(self.unbroken).items() if at > step
                  and known.get(at) != was]  # fmt: skip
        return found

    def _plans(self, name: str, attempt: int, *, asynchronous: bool) -> list[NodePlan]:
        launch = Launch(self.root / name, self.model, "rows", nodes=1, processes=2)
        write_rows(launch.scratch(0) / "datasets" / "rows")
        asked = recipe(
            optimisation={"max_steps": STEPS, "accumulation": 2, "log_every": 2, "evaluate_every": EVALUATES},
            checkpoints={"every_steps": EVERY, "keep": 1, "keep_best": 1, "asynchronous": asynchronous},
        )
        return launch.plans(asked, attempt)

    def _killed(self, plans: list[NodePlan], kill: Kill) -> None:
        forked = ranks_harness.start(plans, partial(main, kill=kill))
        forked.ranks[kill.rank].join(ranks_harness.LIMIT)
        for rank in forked.ranks:
            rank.kill()
            rank.join()
        assert forked.ranks[kill.rank].exitcode == -9, Path(plans[0].folder.log).read_text()

    def _ended(self, plans: list[NodePlan]) -> JobFolder:
        forked = ranks_harness.start(plans, main)
        try:
            assert forked.wait() == [0, 0], Path(plans[0].folder.log).read_text()
        finally:
            forked.end()
        return plans[0].folder


def metrics_of(folder: JobFolder) -> dict[int, object]:
    """Return what each checkpoint knew of its worth, by step."""
    return {event.step or 0: event.data["metrics"] for event in of_kind(folder, "checkpoint")}


def checkpoints_of(plan: NodePlan) -> Path:
    return Path(TrainJob.model_validate_json(plan.files[plan.folder.recipe.name]).checkpoints)


def going_on(plan: NodePlan, place: Path, **changes: object) -> NodePlan:
    """Return the plan with a job that goes on from `place`, a checkpoint or the folder of several."""
    name = plan.folder.recipe.name
    job = TrainJob.model_validate_json(plan.files[name])
    job = job.model_copy(update={"resume_from": str(place), **changes})
    return replace(plan, files={**plan.files, name: job.model_dump_json()})


def torn_in(root: Path) -> list[str]:
    """Return the names of the torn checkpoints that are newer than the newest complete one."""
    names: list[str] = []
    for step in reversed(checkpoints.steps(root)):
        folder = root / f"checkpoint-{step}"
        if not folders.damage(folder):
            break
        names.append(folder.name)
    return sorted(names)
