"""The page on which a run's models are tried."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from training.spec.lint import Refused
from webapp.people import person
from webapp.runs import actions as run_actions
from webapp.runs.models import Run
from webapp.runs.views.find import get_run

from . import actions, page
from .choice import ready_exports
from .forms import Form, exported
from .models import Trial

PAGE = "trials/page.html"


@never_cache
@require_GET
def new(request: HttpRequest, run_id: int) -> HttpResponse:
    run = get_run(run_id)
    form = Form.fresh(ready_exports(run), request.GET.get("export", ""))
    return render(request, PAGE, page.whole(run, form) | _live(run))


@never_cache
@require_GET
def trial(request: HttpRequest, run_id: int, trial_id: int) -> HttpResponse:
    """One trial; the cursor is read first, so that what changes meanwhile comes again."""
    run = get_run(run_id)
    live, found = _live(run), _trial(run_id, trial_id)
    return render(request, PAGE, page.whole(run, Form.of_trial(found), found) | live)


@never_cache
@require_GET
def part(request: HttpRequest, run_id: int, trial_id: int) -> HttpResponse:
    return render(request, "trials/trial.html", {"run": get_run(run_id)} | page.shown(_trial(run_id, trial_id)))


@never_cache
@require_GET
def history(request: HttpRequest, run_id: int) -> HttpResponse:
    run = get_run(run_id)
    return render(request, "trials/history.html", {"run": run, "history": page.history(run)})


@require_POST
def ask(request: HttpRequest, run_id: int) -> HttpResponse:
    run, form = get_run(run_id), Form.posted(request.POST)
    try:
        made = actions.ask(run, person(request), **form.asked(run))
    except Refused as refused:
        context = page.whole(run, form) | _live(run) | {"problems": refused.problems}
        return render(request, PAGE, context, status=422)
    return redirect(made)


@require_POST
def fixed(request: HttpRequest, run_id: int) -> HttpResponse:
    """Put the recipe's own prompts to an export that has not answered them."""
    run = get_run(run_id)
    try:
        export = exported(run, request.POST.get("export", ""))
        made = actions.fixed(export) if export else None
    except Refused as refused:
        for problem in refused.problems:
            messages.error(request, str(problem))
        return redirect(run)
    return redirect(made or run)


@require_POST
def cancel(request: HttpRequest, run_id: int, trial_id: int) -> HttpResponse:
    found = _trial(run_id, trial_id)
    try:
        run_actions.cancel(found, person(request).username)
    except Refused as refused:
        for problem in refused.problems:
            messages.error(request, str(problem))
    return redirect(found)


def _trial(run_id: int, trial_id: int) -> Trial:
    rows = Trial.objects.select_related("told_in__run", "requested_by", "node")
    return get_object_or_404(rows, pk=trial_id, told_in__run=run_id)


def _live(run: Run) -> dict[str, object]:
    """What the script needs to hear of changes."""
    socket, poll = f"/ws/runs/{run.pk}/", reverse("runs:live", args=[run.pk])
    return {"live": {"run": run.pk, "cursor": run.journal, "socket": socket, "poll": poll}}
