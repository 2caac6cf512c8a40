"""The recipe's own prompts with what base and exports answered, as one table; the newest answer of each counts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from django.db.models import QuerySet

from webapp.runs.models import Export, Run

from . import choice
from .models import Answer, Trial


@dataclass
class Column:
    """One model's answers. `export`: None is the base; `trial` the one that its answers are from."""

    name: str
    export: Export | None
    trial: Trial
    answers: dict[int, Answer] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """One prompt, and its answers in the order of the columns, each with its column's name."""

    number: int
    prompt: dict[str, Any]
    answers: list[tuple[str, Answer | None]]


def part(run: Run) -> dict[str, Any]:
    """Return what the run's page shows of them."""
    return table(run)


def table(run: Run, only: Export | None = None) -> dict[str, Any]:
    """Return columns and rows; with `only`, of this export and the base alone."""
    columns = [c for c in _columns(run) if only is None or c.export is None or c.export.pk == only.pk]
    prompts = columns[-1].trial.prompts if columns else []
    rows = [Row(n, prompt, [(c.name, c.answers.get(n)) for c in columns]) for n, prompt in enumerate(prompts)]
    return {"columns": columns, "rows": rows, "asks": len(run.recipe.get("prompts", {}).get("ask", []))}


def _columns(run: Run) -> list[Column]:
    """Base first, then exports by step."""
    found: dict[int | None, Column] = {}
    for answer in _answers(run):
        column = found.get(answer.export_id)
        if column is None or column.trial != answer.trial:  # trials come in order: a newer one takes the place
            column = Column(choice.name_of(answer.export), answer.export, answer.trial)
            found[answer.export_id] = column
        column.answers[answer.prompt] = answer
    return sorted(found.values(), key=lambda c: (c.export.checkpoint.step, c.export.pk) if c.export else (-1, 0))


def _answers(run: Run) -> QuerySet[Answer]:
    rows = Answer.objects.filter(trial__kind="fixed", trial__told_in__run=run)
    rows = rows.select_related("trial", "export__checkpoint__attempt__run", "export__node")
    return rows.order_by("trial_id", "model", "prompt")
