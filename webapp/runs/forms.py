"""The new-run form: what is chosen, and the recipe, as fields or as YAML.

The recipe has one source at a time: the fields laid over the YAML while the form is open, the YAML alone
while the editor is. Values stay as they were typed, so that a refused form comes back with nothing lost;
training.spec says what is wrong with them, field by field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

import yaml
from django.http import QueryDict

from training.spec import presets
from training.spec.lint import Problem, Refused, parse_recipe
from training.spec.reading import read_yaml
from webapp.datasets.models import Version
from webapp.fleet.models import Cluster

from .actions import Order
from .models import ModelSource, Run
from .queue.wish import FIELDS, Wish, shown
from .queue.wish import typed as wish_typed
from .recipe_fields import Spec, laid_over, specs, typed

FORM, YAML = "form", "yaml"
T = TypeVar("T")
ASKED = (*FIELDS, "priority")


@dataclass
class RunForm:
    """What the form holds: strings as typed. `at` is the editor that is open: form or yaml."""

    name: str = ""
    preset: str = ""
    model: str = ""
    dataset: str = ""
    cluster: str = ""
    nodes: str = ""
    gpus_per_node: str = ""
    labels: str = ""
    on_nodes: str = ""
    priority: str = ""
    source: str = ""
    at: str = FORM
    text: str = ""
    fields: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, post: Mapping[str, str]) -> RunForm:
        form = cls()
        for key in ("name", "preset", "model", "dataset", "cluster", "source", *ASKED):
            setattr(form, key, str(post.get(key, "")))
        form.at = YAML if post.get("editor") == YAML else FORM
        form.text = str(post.get("yaml", "")).replace("\r\n", "\n")
        form.fields = {key: posted(post, spec) for key, spec in specs().items() if key in post}
        return form

    @classmethod
    def fresh(cls, preset: str) -> RunForm:
        """Return the form as it opens: the preset's recipe, and what there is only one of."""
        form = cls(preset=preset, model=_only(ModelSource), cluster=_only(Cluster))
        newest = Version.objects.order_by("-created_at").first()
        form.dataset = str(newest.pk) if newest else ""
        form.fill(presets.load(preset).recipe.model_dump(mode="json"))
        return form

    @classmethod
    def clone_of(cls, run: Run) -> RunForm:
        form = cls(
            name=f"{run.name} (clone)"[:200],
            preset=run.preset,
            model=str(run.model_id),
            dataset=str(run.dataset_id),
            cluster=str(run.cluster_id),
            source=str(run.pk),
            priority=str(min(run.priority, 0) or ""),
        )
        vars(form).update(shown(run.wished()))
        form.fill(run.recipe)
        return form

    @property
    def asked(self) -> dict[str, str]:
        """Where it would like to train, and how soon, as typed."""
        return {name: getattr(self, name) for name in ASKED}

    def fill(self, recipe: dict[str, Any]) -> None:
        """Show `recipe` in both editors."""
        self.text = yaml.safe_dump(recipe, sort_keys=False)
        self.fields = typed(recipe)

    def turn_to(self, editor: str) -> None:
        """Open the other editor with what this one holds; raise Refused where that can't be read."""
        recipe = self.recipe()
        with suppress(Refused):  # what is wrong is said by the panel; here it stays as it was typed
            recipe = parse_recipe(recipe).model_dump(mode="json")
        self.at = editor
        self.fill(recipe)

    def recipe(self) -> dict[str, Any]:
        """Return the recipe as it stands, unchecked; raise Refused where the YAML can't be read."""
        base = read_yaml(self.text)
        return base if self.at == YAML else laid_over(base, self.fields)

    def order(self) -> Order:
        """Return what is asked for; raise Refused with everything that is missing."""
        problems: list[Problem] = []
        model = _chosen(ModelSource, self.model, "model", "Choose a model, or add one.", problems)
        dataset = _chosen(Version, self.dataset, "dataset", "Choose a data set, or upload one.", problems)
        cluster = _chosen(Cluster, self.cluster, "cluster", "Choose a cluster, or add nodes.", problems)
        wish = _kept(problems, lambda: wish_typed(self.asked)) or Wish()
        priority = _kept(problems, lambda: priority_typed(self.priority)) or 0
        recipe: dict[str, Any] = {}
        try:
            presets.load(self.preset)
            recipe = self.recipe()
        except Refused as refused:
            problems += refused.problems
        if problems:
            raise Refused(problems)
        return Order(self.name, self.preset, recipe, model, dataset, cluster, wish, priority)


def priority_typed(text: str) -> int:
    """Return the number that was typed, 0 where none was. Raises Refused."""
    text = text.strip() or "0"
    if not re.fullmatch(r"[+-]?[0-9]{1,9}", text, re.ASCII):
        raise Refused([Problem("priority", f"{text[:30]!r} is no whole number", "Leave it empty for 0.")])
    return int(text)


def _kept(problems: list[Problem], make: Callable[[], T]) -> T | None:
    """Return what `make` makes; None where it refuses, with its problems added."""
    try:
        return make()
    except Refused as refused:
        problems += refused.problems
        return None


def posted(post: Mapping[str, str], spec: Spec) -> str:
    """Return what was typed into a field; of several ticks, all: each control has an empty one for none."""
    if spec.kind == "choices" and isinstance(post, QueryDict):
        return ", ".join(filter(None, map(str, post.getlist(spec.key))))
    return str(post[spec.key])


def _only(kind: type[ModelSource] | type[Cluster]) -> str:
    first, *others = kind._default_manager.all()[:2] or [None]
    return str(first.pk) if first and not others else ""


def _chosen(kind: Any, key: str, name: str, fix: str, problems: list[Problem]) -> Any:
    found = kind._default_manager.filter(pk=int(key)).first() if key.isdecimal() and len(key) < 19 else None
    if found is None:
        problems.append(Problem(name, "none is chosen" if not key else f"there is none with number {key[:20]}", fix))
    return found
