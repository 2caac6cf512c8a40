"""The new-run form: what is chosen, the ten recipe fields that people change, and all fields as YAML.

The recipe has one source at a time: the ten fields laid over the YAML while the form is open, the YAML alone
while the editor is. Values stay as they were typed, so that a refused form comes back with nothing lost;
training.spec says what is wrong with them, field by field.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, get_args, get_origin

import yaml
from pydantic import BaseModel

from training.spec import presets
from training.spec.lint import Problem, Refused, parse_recipe
from training.spec.reading import read_yaml
from training.spec.recipe import Recipe, merge
from webapp.datasets.models import Version
from webapp.fleet.models import Cluster

from .actions import Order
from .models import ModelSource, Run

COMMON = (
    "optimisation.max_steps",
    "optimisation.learning_rate",
    "optimisation.per_device_batch",
    "optimisation.accumulation",
    "optimisation.schedule",
    "optimisation.warmup_ratio",
    "data.max_length",
    "precision",
    "checkpoints.every_steps",
    "export.at_end",
)
LABELS = {
    "optimisation.max_steps": "Steps",
    "optimisation.learning_rate": "Learning rate",
    "optimisation.per_device_batch": "Batch per rank",
    "optimisation.accumulation": "Accumulation",
    "optimisation.schedule": "Schedule",
    "optimisation.warmup_ratio": "Warm-up, share of steps",
    "data.max_length": "Tokens a row",
    "precision": "Precision",
    "checkpoints.every_steps": "Checkpoint every … steps",
    "export.at_end": "Export when finished",
}
FORM, YAML = "form", "yaml"


@dataclass
class RunForm:
    """What the form holds: strings as typed. `at` is the editor that is open: form or yaml."""

    name: str = ""
    preset: str = ""
    model: str = ""
    dataset: str = ""
    cluster: str = ""
    source: str = ""
    at: str = FORM
    text: str = ""
    common: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, post: Mapping[str, str]) -> RunForm:
        form = cls()
        for key in ("name", "preset", "model", "dataset", "cluster", "source"):
            setattr(form, key, str(post.get(key, "")))
        form.at = YAML if post.get("editor") == YAML else FORM
        form.text = str(post.get("yaml", "")).replace("\r\n", "\n")
        form.common = {key: str(post.get(key, "")) for key in COMMON}
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
        )
        form.fill(run.recipe)
        return form

    def fill(self, recipe: dict[str, Any]) -> None:
        """Show `recipe` in both editors."""
        self.text = yaml.safe_dump(recipe, sort_keys=False)
        self.common = {key: shown(_dig(recipe, key)) for key in COMMON}

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
        if self.at == YAML:
            return base
        for key, value in self.common.items():
            base = merge(base, _nest(key, value))
        return base

    def order(self) -> Order:
        """Return what is asked for; raise Refused with everything that is missing."""
        problems: list[Problem] = []
        model = _chosen(ModelSource, self.model, "model", "Choose a model, or add one.", problems)
        dataset = _chosen(Version, self.dataset, "dataset", "Choose a data set, or upload one.", problems)
        cluster = _chosen(Cluster, self.cluster, "cluster", "Choose a cluster, or add nodes.", problems)
        recipe: dict[str, Any] = {}
        try:
            presets.load(self.preset)
            recipe = self.recipe()
        except Refused as refused:
            problems += refused.problems
        if problems:
            raise Refused(problems)
        return Order(self.name, self.preset, recipe, model, dataset, cluster)


def shown(value: Any) -> str:
    return ("on" if value else "") if isinstance(value, bool) else str(value)


def _nest(key: str, value: str) -> dict[str, Any]:
    out: Any = value == "on" if key == "export.at_end" else value
    for part in reversed(key.split(".")):
        out = {part: out}
    return out


def _dig(recipe: Any, key: str) -> Any:
    for part in key.split("."):
        recipe = recipe.get(part, "") if isinstance(recipe, dict) else ""
    return recipe


def _only(kind: type[ModelSource] | type[Cluster]) -> str:
    first, *others = kind._default_manager.all()[:2] or [None]
    return str(first.pk) if first and not others else ""


def _chosen(kind: Any, key: str, name: str, fix: str, problems: list[Problem]) -> Any:
    found = kind._default_manager.filter(pk=int(key)).first() if key.isdecimal() and len(key) < 19 else None
    if found is None:
        problems.append(Problem(name, "none is chosen" if not key else f"there is none with number {key[:20]}", fix))
    return found


@dataclass(frozen=True)
class CommonField:
    """One recipe field as the form draws it. `kind`: number, choice or switch."""

    key: str
    label: str
    hint: str
    value: str
    kind: str
    choices: tuple[str, ...]
    problems: list[Problem]


def common_fields(form: RunForm, problems: list[Problem]) -> list[CommonField]:
    return [_common_field(key, form.common.get(key, ""), [p for p in problems if p.field == key]) for key in COMMON]


def _common_field(key: str, value: str, problems: list[Problem]) -> CommonField:
    info = _field_info(key)
    choices = tuple(str(c) for c in get_args(info.annotation)) if get_origin(info.annotation) else ()
    kind = "choice" if choices else "switch" if info.annotation is bool else "number"
    return CommonField(key, LABELS[key], info.description or "", value, kind, choices, problems)


def _field_info(key: str) -> Any:
    *sections, name = key.split(".")
    model: type[BaseModel] = Recipe
    for section in sections:
        annotation = model.model_fields[section].annotation
        assert isinstance(annotation, type)
        assert issubclass(annotation, BaseModel)
        model = annotation
    return model.model_fields[name]
