"""What is asked for: an order, checked whole before a row is made of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from training.spec import presets
from training.spec.length import total_steps
from training.spec.lint import Problem, Refused, parse_recipe
from training.spec.plan import Target, check_nodes, check_rows
from training.spec.recipe import Recipe, merge
from webapp.datasets.models import Version
from webapp.fleet.models import Cluster

from ..models import ModelSource, Run
from ..queue.board import slots
from ..queue.rank import priority_problems
from ..queue.wish import Wish

MAX_NAME = 200


@dataclass(frozen=True)
class Order:
    """What a person or a CI job asks for. `overrides` are nested recipe fields laid over the preset.

    `wish`: where it would like to train; `priority`: its place in the queue, from -100 to 100.
    """

    name: str
    preset: str
    overrides: dict[str, Any]
    model: ModelSource
    dataset: Version
    cluster: Cluster
    wish: Wish = field(default_factory=Wish)
    priority: int = 0


def resolve(preset: str, overrides: dict[str, Any]) -> Recipe:
    """Return the whole recipe; raise Refused with every problem."""
    return parse_recipe(merge(presets.load(preset).recipe.model_dump(mode="json"), overrides))


def check(order: Order) -> Recipe:
    """Return the recipe of an order that can run; raise Refused otherwise. Touches nothing."""
    problems = _name_problems(order.name)
    recipe = None
    try:
        recipe = resolve(order.preset, order.overrides)
        check_nodes(recipe, slots(order.cluster, order.wish))
        check_rows(recipe, test=order.dataset.test_rows > 0)
    except Refused as refused:
        problems += refused.problems
    if recipe:
        problems += _data_problems(recipe, order.dataset) + _beside_problems(recipe)
    if problems or recipe is None:
        raise Refused(problems)
    return recipe


def _name_problems(name: str) -> list[Problem]:
    if not name.strip():
        return [Problem("name", "it is empty", "Give the run a name.")]
    if len(name) > MAX_NAME:
        return [Problem("name", f"it has {len(name)} characters", f"At most {MAX_NAME} fit.")]
    if any(ord(c) < 32 for c in name):
        return [Problem("name", "it has control characters", "Leave them out.")]
    return []


def _data_problems(recipe: Recipe, version: Version) -> list[Problem]:
    wanted, have = recipe.data.format, version.format
    if wanted != have:
        why = f"its rows are {have}, the recipe's data.format is {wanted}"
        return [Problem("dataset", why, "Choose another data set or change data.format.")]
    if wanted == "text" and (column := version.text_field) != recipe.data.text_field:
        why = f"the data set has its text in {column!r}, not in {recipe.data.text_field!r}"
        return [Problem("data.text_field", why, f"Set it to {column}.")]
    return []


def _beside_problems(recipe: Recipe) -> list[Problem]:
    """By hand a recipe names its model and its rows; a run of the site has both from what is chosen here."""
    named = {
        "model.name": recipe.model.name,
        "model.revision": recipe.model.revision,
        "data.train": recipe.data.train,
        "data.test": recipe.data.test,
    }
    why, fix = "it is chosen beside the recipe", "Leave it empty, and choose the run's model and data set."
    return [Problem(field, why, fix) for field, value in named.items() if value]


def target_of(run_or_order: Run | Order) -> Target:
    model, version = run_or_order.model, run_or_order.dataset
    return Target(model.location, version.digest, model.revision, has_test=version.test_rows > 0)


def planned_steps(recipe: Recipe, version: Version, cluster: Cluster, wish: Wish) -> int:
    """Return the steps of a run, with `epochs` as far as the rows tell; `started` brings the number that counts."""
    return total_steps(recipe, rows=version.rows, ranks=sum(slot.processes for slot in slots(cluster, wish)))


@transaction.atomic
def create(order: Order, owner: User | None, *, cloned_from: Run | None = None) -> Run:
    """Return a new draft."""
    recipe = check(order)
    if problems := priority_problems(order.priority, owner):
        raise Refused(problems)
    return Run.objects.create(
        name=order.name.strip(),
        owner=owner,
        preset=order.preset,
        recipe=recipe.model_dump(mode="json"),
        model=order.model,
        dataset=order.dataset,
        cluster=order.cluster,
        wish=order.wish.as_json(),
        priority=order.priority,
        cloned_from=cloned_from,
        total_steps=planned_steps(recipe, order.dataset, order.cluster, order.wish),
    )


def clone(run: Run, owner: User | None, changes: dict[str, Any] | None = None, name: str = "") -> Run:
    """Return a new draft with the same recipe but for `changes`; raised above the others its source alone was."""
    overrides = merge(run.recipe, changes or {})
    order = Order(
        name or f"{run.name} (clone)"[:MAX_NAME], run.preset, overrides, run.model, run.dataset, run.cluster,
        run.wished(), min(run.priority, 0),
    )  # fmt: skip
    return create(order, owner, cloned_from=run)
