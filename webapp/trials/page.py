"""What the page of a run's trials shows; the first page and each refresh are made from the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from webapp.runs.models import Run

from . import choice, queue
from .forms import Form, is_chat
from .models import Answer, Trial
from .models.trial import TrialState

HISTORY = 50


@dataclass(frozen=True)
class Exchange:
    """One prompt of a trial, and what each model says to it."""

    prompt: dict[str, Any]
    answers: list[tuple[dict[str, Any], Answer]]


def whole(run: Run, form: Form, trial: Trial | None = None) -> dict[str, Any]:
    """Return the context of the page; `trial`: the one that is looked at."""
    exports = choice.ready_exports(run)
    return {
        "run": run,
        "form": form,
        "chat": is_chat(run),
        "choices": [(str(export.pk), choice.name_of(export), choice.copies(export)) for export in exports],
        "model": run.model,
        "started": run.attempt is not None,
        "history": history(run),
        **(shown(trial) if trial else {}),
    }


def shown(trial: Trial) -> dict[str, Any]:
    """Return what one trial shows."""
    answers = list(trial.answers.order_by("prompt", "model"))
    exchanges = [
        Exchange(prompt, [(trial.asked[a.model], a) for a in answers if a.prompt == number])
        for number, prompt in enumerate(trial.prompts)
    ]
    waits = list(queue.ahead_of(trial)) if trial.state == TrialState.QUEUED else []
    return {"trial": trial, "exchanges": exchanges, "waits": waits}


def history(run: Run) -> list[Trial]:
    rows = Trial.objects.filter(told_in__run=run).select_related("requested_by", "node", "told_in")
    return list(rows[:HISTORY])
