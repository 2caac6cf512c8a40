"""How the new-run form draws the recipe: ten fields that people change, and behind them all others by section."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from training.spec import presets
from training.spec.lint import Problem

from .forms import RunForm
from .recipe_fields import ONLY_WHEN, ROOT, Spec, applies, sections, specs, typed

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
    "model.trust_remote_code": "Run the model's own code",
    "method.kind": "Method",
    "method.alpha": "Alpha",
    "data.on_long": "Rows that are too long",
    "data.untrained_rows": "Untrained rows, share allowed",
    "data.test_share": "Held out, share of rows",
    "optimisation.betas": "Betas, first and second moment",
    "optimisation.warmup_steps": "Warm-up, steps",
    "optimisation.epochs": "Epochs, in place of steps",
    "optimisation.max_grad_norm": "Gradient norm at most",
    "optimisation.log_every": "Log every … steps",
    "optimisation.evaluate_every": "Evaluate every … steps",
    "fsdp.version": "FSDP version",
    "fsdp.weights": "How weights are loaded",
    "fsdp.cpu_offload": "CPU offload",
    "fsdp.ram_efficient_loading": "RAM-efficient loading",
    "checkpoints.every_minutes": "Checkpoint every … minutes",
    "checkpoints.keep": "Newest kept",
    "checkpoints.keep_best": "Best kept besides",
    "checkpoints.best_metric": "Best by",
    "checkpoints.keep_every": "Kept for good, every … steps",
    "checkpoints.asynchronous": "Save beside training",
    "checkpoints.at_end": "Save at the last step",
    "checkpoints.timeout_seconds": "Save time-out, seconds",
    "export.shard_gigabytes": "Largest file, GB",
    "limits.hours": "Hours at most",
    "limits.restarts": "Restarts after a failure",
    "limits.spare": "On a spare node if one is free",
    "trackers.names": "Report to",
    "prompts.ask": "Prompts, with a line of three dashes between two",
    "prompts.max_new_tokens": "Tokens an answer",
    "prompts.seconds": "Seconds for all answers",
}
TITLES = {
    ROOT: "Number formats",
    "model": "Model",
    "method": "Method: full, LoRA or QLoRA",
    "data": "Data and packing",
    "optimisation": "Optimisation",
    "fsdp": "FSDP",
    "checkpoints": "Checkpoints",
    "export": "Export",
    "limits": "Limits and restarts",
    "trackers": "Trackers",
    "prompts": "Fixed prompts",
}


@dataclass(frozen=True)
class Field:
    """One field as drawn. `preset`: what the preset says, None without one; `applies`: it means something now."""

    spec: Spec
    label: str
    value: str
    preset: str | None
    applies: bool
    problems: list[Problem]

    @property
    def differs(self) -> bool:
        return self.preset is not None and not same(self.spec, self.value, self.preset)

    @property
    def ticked(self) -> list[str]:
        """The choices taken, where there may be several."""
        return self.value.split(", ")

    @property
    def when(self) -> str:
        """`other.field=value,value`: on what it depends whether the field is shown."""
        other, values = ONLY_WHEN.get(self.spec.key, ("", ()))
        return f"{other}={','.join(values)}" if other else ""


@dataclass(frozen=True)
class Group:
    """A section of the form. `problems`: those of the section as a whole."""

    name: str
    title: str
    about: str
    fields: list[Field]
    problems: list[Problem]

    @property
    def differing(self) -> int:
        return sum(field.differs for field in self.fields)

    @property
    def is_open(self) -> bool:
        return bool(self.problems or any(field.problems for field in self.fields))


def same(spec: Spec, one: str, other: str) -> bool:
    """Tell whether two typed texts mean the same: 1e-3 is 0.001."""
    if spec.kind == "number":
        try:
            return float(one) == float(other)
        except ValueError:
            return one == other
    return bool(spec.value(one) == spec.value(other))


def common(form: RunForm, problems: Sequence[Problem]) -> list[Field]:
    """Return the ten fields that are always in sight."""
    return _drawn(form, problems, COMMON)


def groups(form: RunForm, problems: Sequence[Problem]) -> list[Group]:
    """Return all other fields by section."""
    found = []
    for name, about in sections().items():
        keys = [key for key, spec in specs().items() if spec.section == name and key not in COMMON]
        whole = [problem for problem in problems if problem.field == name]
        found.append(Group(name, TITLES.get(name, label(name)), about, _drawn(form, problems, keys), whole))
    return [group for group in found if group.fields]


def label(key: str) -> str:
    return LABELS.get(key) or key.rpartition(".")[2].replace("_", " ").capitalize()


def _drawn(form: RunForm, problems: Sequence[Problem], keys: Iterable[str]) -> list[Field]:
    usual = typed(presets.load(form.preset).recipe.model_dump(mode="json")) if form.preset in presets.names() else {}
    return [
        Field(
            specs()[key], label(key), form.fields.get(key, ""), usual.get(key), applies(key, form.fields),
            [p for p in problems if p.field == key or p.field.startswith(f"{key}.")],
        )
        for key in keys
    ]  # fmt: skip
