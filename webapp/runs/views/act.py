"""The buttons of a run page: each calls one action, and comes back to the page with what became of it."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from training.spec.lint import Problem, Refused
from webapp.keys import key_of
from webapp.people import person

from .. import actions
from ..models import Checkpoint, Run
from .find import get_run


@require_POST
def launch(request: HttpRequest, run_id: int) -> HttpResponse:
    return _act(request, run_id, lambda run: actions.launch(run, person(request).username), "Launched.")


@require_POST
def stop(request: HttpRequest, run_id: int) -> HttpResponse:
    how = request.POST.get("how", actions.How.GRACEFUL)
    done = "Stop requested: the run ends when its nodes have confirmed it."
    return _act(request, run_id, lambda run: actions.stop(run, person(request).username, how), done)


@require_POST
def resume(request: HttpRequest, run_id: int) -> HttpResponse:
    def act(run: Run) -> None:
        actions.resume(run, person(request).username, checkpoint_named(request, run))

    return _act(request, run_id, act, "Resumed: a new attempt is queued.")


@require_POST
def export(request: HttpRequest, run_id: int) -> HttpResponse:
    def act(run: Run) -> None:
        chosen = request.POST.get("dtype", ""), request.POST.get("adapter", "")
        actions.export(run, person(request), checkpoint_named(request, run), *chosen, once=True)

    return _act(
        request,
        run_id,
        act,
        "Export queued: its node is asked what it will be, then it starts. It appears below, with its progress.",
    )


def _act(request: HttpRequest, run_id: int, act: Callable[[Run], object], done: str) -> HttpResponse:
    run = get_run(run_id)
    try:
        act(run)
    except Refused as refused:
        for problem in refused.problems:
            messages.error(request, str(problem))
    else:
        messages.success(request, done)
    return redirect(run)


def checkpoint_named(request: HttpRequest, run: Run) -> Checkpoint | None:
    """Return the checkpoint that the form names, or None where it names none."""
    key = request.POST.get("checkpoint", "")
    if not key:
        return None
    found = Checkpoint.objects.filter(attempt__run=run, pk=key_of(key) or 0).first()
    if found is None:
        text = f"this run has no checkpoint {key[:100]!r}"
        raise Refused([Problem("checkpoint", text, "Choose one from its list.")])
    return found
