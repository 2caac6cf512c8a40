"""What a person at the terminal asks for, checked whole, as the plan that the service would make of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ..spec import plan
from ..spec.lint import Problem, Refused, parse_recipe
from ..spec.parts import FreshPart
from ..spec.plan import NodePlan, Target, plan_attempt
from ..spec.reading import read_yaml
from ..spec.recipe import Recipe
from . import nodes, past

RUN = 1  # by hand a folder holds one run with its attempts
HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")
T = TypeVar("T")


@dataclass(frozen=True)
class Wanted:
    """The command line. `recipe`: its file. None: not said."""

    recipe: Path
    out: Path | None = None
    processes: int | None = None
    nodes: str | None = None
    rank: int = 0
    port: int | None = None
    attempt: int | None = None
    resume: str | None = None
    fresh: list[FreshPart] | None = None

    @property
    def scratch(self) -> Path:
        return (self.out or self.recipe.with_suffix(".out")).absolute()


@dataclass(frozen=True)
class Planned:
    """This node's plan. `skipped`: checkpoints that are newer than the one it goes on from, and what they lack."""

    plan: NodePlan
    recipe: Recipe
    attempt: int
    skipped: list[str]


def planned(wanted: Wanted) -> Planned:
    """Return what to run on this node.

    Raises Refused, with every problem that can be seen at once. Touches nothing.
    """
    recipe = parse_recipe(read_yaml(_text(wanted.recipe)))
    problems = _unheard(recipe) + _unsaid(wanted)
    target = _kept(problems, lambda: target_of(recipe, wanted.recipe.absolute().parent))
    slots = _kept(problems, lambda: nodes.slots(wanted.scratch, wanted.processes, wanted.nodes, wanted.rank))
    if slots:
        _kept(problems, lambda: plan.check_nodes(recipe, slots))
    port = _kept(problems, lambda: nodes.port(wanted.nodes, wanted.port))
    found = _kept(problems, lambda: past.checkpoint(wanted.scratch, RUN, wanted.resume))
    number = _kept(problems, lambda: past.attempt(wanted.scratch, RUN, wanted.rank, wanted.attempt))
    if problems:
        raise Refused(problems)
    assert target
    assert slots
    assert found
    assert port
    assert number
    launch = plan.Launch(RUN, number, port, "by-hand", found.place, nodes.environment(), tuple(wanted.fresh or ()))
    return Planned(plan_attempt(recipe, target, slots, launch)[wanted.rank], recipe, number, found.skipped)


def _unheard(recipe: Recipe) -> list[Problem]:
    """Return what of a recipe only the service does."""
    if not recipe.limits.restarts:
        return []
    fix = "Leave it out, and start it again with --resume latest."
    return [Problem("limits.restarts", "by hand nobody is there who restarts it", fix)]


def _unsaid(wanted: Wanted) -> list[Problem]:
    if not wanted.fresh or wanted.resume:
        return []
    return [Problem("--fresh", "without --resume every part begins anew", "Leave it out, or say what to go on from.")]


def _kept(problems: list[Problem], check: Callable[[], T]) -> T | None:
    """Return what `check` does; keep its problems, so that all are told at once."""
    try:
        return check()
    except Refused as refused:
        problems += refused.problems
        return None


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise Refused([Problem("recipe", f"{path}: {error.strerror}", "Name a file that can be read.")]) from None
    except UnicodeDecodeError as error:
        raise Refused([Problem("recipe", f"{path} is no UTF-8: byte {error.start}", "Save it as UTF-8.")]) from None


def target_of(recipe: Recipe, folder: Path) -> Target:
    """Return which model and which rows the recipe names; relative paths count from `folder`. Raises Refused."""
    problems: list[Problem] = []
    model = _kept(problems, lambda: _model(recipe.model.name, folder))
    train = _kept(problems, lambda: _rows("data.train", recipe.data.train, folder))
    test = _kept(problems, lambda: _rows("data.test", recipe.data.test, folder)) if recipe.data.test else ""
    if problems:
        raise Refused(problems)
    assert model
    assert train
    assert test is not None
    return Target(model, "", recipe.model.revision, has_test=bool(test), train=train, test=test)


def _model(name: str, folder: Path) -> str:
    if not name:
        raise Refused([Problem("model.name", "it is empty", "Name the base model: a folder, or a hub id.")])
    place = _place("model.name", name, folder)
    if (place / "config.json").is_file():
        return str(place.resolve())
    if place.exists():
        raise Refused([Problem("model.name", f"{place} holds no config.json", "Name a model's folder.")])
    if name.startswith(("/", ".", "~")) or not HUB_ID.fullmatch(name):
        raise Refused([Problem("model.name", f"there is no folder {place}", "Name a model's folder, or a hub id.")])
    return name


def _rows(field: str, name: str, folder: Path) -> str:
    if not name:
        raise Refused([Problem(field, "it is empty", "Name a JSON Lines file of rows.")])
    place = _place(field, name, folder)
    if not place.is_file():
        raise Refused([Problem(field, f"there is no file {place}", "Name a JSON Lines file of rows.")])
    if not place.stat().st_size:
        raise Refused([Problem(field, f"{place} is empty", "Name a file that holds rows.")])
    return str(place.resolve())


def _place(field: str, name: str, folder: Path) -> Path:
    """Return the path that `name` stands for, there or not. Raises Refused where it can be none."""
    try:
        place = folder / Path(name).expanduser()
        place.exists()
    except (OSError, RuntimeError) as error:  # too long, no right to look, a home of nobody
        raise Refused([Problem(field, f"it can't be looked at: {error}", "Name another path.")]) from None
    return place
