"""The rows that the list of runs is measured on: ten thousand runs of five people, and some with long series."""

from __future__ import annotations

import math
import random
from datetime import timedelta
from pathlib import Path

from django.utils import timezone

from tests.webapp.rows import World, make_world
from training.spec import presets
from webapp.datasets.models import Version
from webapp.runs.models import Attempt, ModelSource, Run, Sketch, Tag
from webapp.runs.sketching import Drawn, drawn_on
from webapp.runs.states import RunState

SEED = 6
STATES = [RunState.SUCCEEDED] * 60 + [RunState.FAILED] * 20 + [RunState.STOPPED] * 15 + [RunState.DRAFT] * 5
TAGS = ["baseline", "sweep", "paper", "nightly", "long context"]
AT_ONCE = 500


def make(folder: Path, count: int) -> World:
    """Return the world of `count` runs with losses, tags and ends; of every hundredth the last loss is NaN."""
    world, chance = make_world(folder), random.Random(SEED)
    models = [world.model, *(ModelSource.objects.create(name=f"m{i}", location=f"/models/m{i}") for i in range(9))]
    recipe = presets.load("tiny").recipe.model_dump(mode="json")
    runs = [_run(number, world, chance.choice(models), world.version, recipe, chance) for number in range(count)]
    made = Run.objects.bulk_create(runs, batch_size=AT_ONCE)
    attempts = [Attempt(run=run, number=1, ended_at=run.ended_at) for run in made]
    Attempt.objects.bulk_create(attempts, batch_size=AT_ONCE)
    Sketch.objects.bulk_create([_sketch(run, chance) for run in made], batch_size=AT_ONCE)
    tags = [Tag(run=run, name=name) for run in made for name in chance.sample(TAGS, 2)]
    Tag.objects.bulk_create(tags, batch_size=4 * AT_ONCE)
    return world


def _run(
    number: int, world: World, model: ModelSource, version: Version, recipe: dict[str, object], chance: random.Random
) -> Run:
    state = STATES[number % len(STATES)] if number % 1000 else RunState.RUNNING
    ended = timezone.now() - timedelta(minutes=chance.randrange(60 * 24 * 300))
    return Run(
        name=f"{chance.choice(TAGS)} {chance.choice(['lora', 'full', 'qlora'])} seed {number}",
        owner=world.user,
        preset="tiny",
        recipe=recipe,
        model=model,
        dataset=version,
        cluster=world.cluster,
        state=state,
        step=chance.randrange(5000),
        total_steps=5000,
        created_at=ended - timedelta(hours=13),
        ended_at=None if state in (RunState.RUNNING, RunState.DRAFT) else ended,
    )


def _sketch(run: Run, chance: random.Random) -> Sketch:
    floor = chance.uniform(0.5, 2.0)
    losses = {float(x): floor + 8 / x + chance.gauss(0, 0.05) for x in range(10, 5000, 60)}
    drawn = drawn_on(Drawn(), 1, -math.inf, losses)
    odd = chance.random() < 0.01
    return Sketch(
        run=run, attempt=1, step=drawn.step, last=None if odd else drawn.last, odd="NaN" if odd else "",
        stride=drawn.stride, curve=drawn.curve,
    )  # fmt: skip
