"""The only way to make a trial; anyone with an account may. `webapp.runs.actions.cancel` ends one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from pydantic import BaseModel, ValidationError

from training.spec.answer import MODELS, SECONDS, Prompt, Sampling, as_rows
from training.spec.lint import Problem, Refused
from webapp.dispatch import advance_job
from webapp.runs import lifecycle
from webapp.runs.models import Export, NodeJob, Run

from . import choice
from .models import Answer, Trial

FIELDS = "Change the value."


def ask(
    run: Run,
    user: User | None,
    models: Sequence[Export | None],
    prompts: Sequence[dict[str, Any]],
    sampling: dict[str, Any],
    seconds: float = 120.0,
) -> Trial:
    """Queue a trial; of `models`, None is the base. Raises Refused with every problem at once."""
    problems = [*_model_problems(run, models), *_seconds_problems(seconds)]
    known, found = _parsed(Prompt, prompts, "prompts")
    chosen, more = _parsed(Sampling, [sampling], "sampling")
    if not prompts:
        found.append(Problem("prompts", "there is none", "Write what they shall answer."))
    if problems := [*problems, *found, *more]:
        raise Refused(problems)
    return _make(run, user, "ask", models, known, chosen[0], seconds)


def fixed(export: Export) -> Trial | None:
    """Queue the recipe's own prompts for a ready export, and for the base where that has not answered them yet.

    None where the recipe has no prompts, or the export was asked already.
    """
    run, recipe = export.run, export.run.parsed_recipe()
    prompts = as_rows(recipe.prompts.ask, recipe.data.format)
    asked = Answer.objects.filter(trial__kind="fixed").exclude(trial__state__in=["failed", "cancelled"])
    if not prompts or asked.filter(export=export).exists():
        return None
    base = asked.filter(trial__told_in__run=run, export=None).exclude(stopped_by__in=["time", "stop"]).exists()
    models = [export] if base else [None, export]
    sampling = Sampling(max_new_tokens=recipe.prompts.max_new_tokens)
    return _make(run, export.requested_by, "fixed", models, prompts, sampling, recipe.prompts.seconds)


def again(trial: Trial) -> None:
    """Put fixed prompts once more where a run came between; what a person asked, a person asks again."""
    if trial.kind == "fixed":
        for export in Export.objects.filter(pk__in=[one["export"] for one in trial.asked if one["export"]]):
            after_export(export)


def after_export(export: NodeJob) -> None:
    """What comes with an export that is ready; in the transaction that says so."""
    assert isinstance(export, Export)
    try:
        with transaction.atomic():
            fixed(export)
    except Refused:  # its node was taken out of service meanwhile: the page offers to ask them later
        return


@transaction.atomic
def _make(
    run: Run,
    user: User | None,
    kind: str,
    models: Sequence[Export | None],
    prompts: Sequence[Prompt],
    sampling: Sampling,
    seconds: float,
) -> Trial:
    lifecycle.lock(run.pk)  # before rows that refer to exports, as whoever changes an export does
    exports = [export for export in models if export is not None]
    attempt, (node, folders) = choice.attempt_of(run, exports), choice.place(run, exports)
    trial = Trial.objects.create(
        kind=kind,
        told_in=attempt,
        requested_by=user,
        node=node,
        slot=vars(node.slot()),
        asked=[_asked(export, folders) for export in models],
        prompts=[prompt.model_dump(mode="json", exclude_defaults=True) for prompt in prompts],
        sampling=sampling.model_dump(mode="json"),
        seconds=seconds,
    )
    Answer.objects.bulk_create(
        Answer(trial=trial, model=m, prompt=p, export=e) for m, e in enumerate(models) for p in range(len(prompts))
    )
    lifecycle.tell_of_job(trial, "")
    advance_job(trial.KIND, trial.pk)
    return trial


def _asked(export: Export | None, folders: Mapping[int, str]) -> dict[str, Any]:
    """Return what a trial keeps of one model; None is the base, which lies where the run says."""
    told = {"name": choice.name_of(export), "export": export and export.pk}
    return told if export is None else told | {"folder": folders[export.pk]}


def _model_problems(run: Run, models: Sequence[Export | None]) -> list[Problem]:
    if not models:
        return [Problem("models", "none is chosen", "Choose the base, or an export.")]
    if len(models) > MODELS:
        return [Problem("models", f"{len(models)} are chosen", f"Choose at most {MODELS}.")]
    if len({export and export.pk for export in models}) < len(models):
        return [Problem("models", "one is named twice", "Name each once.")]
    ready = {export.pk for export in choice.ready_exports(run)}
    odd = [export for export in models if export is not None and export.pk not in ready]
    why = "is no ready export of this run"
    return [Problem("models", f"export {export.pk} {why}", "Choose one that is ready.") for export in odd]


def _seconds_problems(seconds: float) -> list[Problem]:
    if 1 <= seconds <= SECONDS:
        return []
    return [Problem("seconds", f"{seconds:g} is not between 1 and {SECONDS}", "Choose another limit.")]


def _parsed(kind: type[Any], bodies: Sequence[dict[str, Any]], field: str) -> tuple[list[Any], list[Problem]]:
    found: list[BaseModel] = []
    problems: list[Problem] = []
    for number, body in enumerate(bodies, 1):
        try:
            found.append(kind.model_validate(body))
        except ValidationError as error:
            for one in error.errors(include_url=False, include_input=False, include_context=False):
                where = ".".join([field, *([str(number)] if field == "prompts" else []), *map(str, one["loc"])])
                problems.append(Problem(where, str(one["msg"]).removeprefix("Value error, "), FIELDS))
    return found, problems
