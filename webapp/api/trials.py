"""Trials: put prompts to a run's base and exports, read what they answer. Anyone with an account may."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest
from ninja import Router
from ninja.responses import Status

from webapp.runs import actions as run_actions
from webapp.runs.models import Run
from webapp.trials import actions
from webapp.trials.forms import exported, prompt_of
from webapp.trials.models import Trial

from .finders import actor_of, by_id, run_of, user_of
from .paging import Cursor, Limit, Page, newest_first
from .shapes.trials import NewTrial, PromptIn, TrialOut

router = Router(tags=["trials"])


@router.post("/runs/{int:run_id}/trials", response={201: TrialOut}, operation_id="create_trial")
def create_trial(request: HttpRequest, run_id: int, body: NewTrial) -> Status[TrialOut]:
    """Put prompts to up to four models. One trial at a time answers on a node; others wait for it."""
    run = run_of(run_id)
    models = [exported(run, str(key)) for key in body.models]
    prompts = [_prompt(run, one) for one in body.prompts]
    made = actions.ask(run, user_of(request), models, prompts, body.sampling(), float(body.seconds))
    return Status(201, TrialOut.of(_trials().get(pk=made.pk), request))


@router.get("/runs/{int:run_id}/trials", response=Page[TrialOut], operation_id="list_trials")
def list_trials(request: HttpRequest, run_id: int, cursor: Cursor = "", limit: Limit = 20) -> Page[TrialOut]:
    """List a run's trials, newest first."""
    found, after = newest_first(_trials().filter(told_in__run=run_of(run_id)), cursor, limit)
    return Page[TrialOut](items=[TrialOut.of(row, request) for row in found], next=after)


@router.get("/trials/{int:trial_id}", response=TrialOut, operation_id="read_trial", url_name="trial")
def read_trial(request: HttpRequest, trial_id: int) -> TrialOut:
    """Read a trial: state, and each answer as far as it has come."""
    return TrialOut.of(by_id(_trials(), trial_id, "trial"), request)


@router.post("/trials/{int:trial_id}/cancel", response=TrialOut, operation_id="cancel_trial")
def cancel_trial(request: HttpRequest, trial_id: int) -> TrialOut:
    """Have a trial ended; what was answered so far stays. It is `cancelled` once nothing of it is left on its node."""
    run_actions.cancel(by_id(_trials(), trial_id, "trial"), actor_of(request))
    return TrialOut.of(_trials().get(pk=trial_id), request)


def _trials() -> QuerySet[Trial]:
    return Trial.objects.select_related("told_in", "node", "requested_by").prefetch_related("answers")


def _prompt(run: Run, asked: PromptIn) -> dict[str, Any]:
    if asked.text is not None and asked.messages is None:
        return prompt_of(run, asked.text)
    return asked.model_dump(exclude_none=True)
