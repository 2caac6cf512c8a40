"""What people keep of a run: tags, notes, whether lists show it."""

from __future__ import annotations

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from training.spec.lint import Problem, Refused
from webapp.people import person

from .. import actions
from ..about import about as shown
from ..models import Run
from .find import get_run


@require_POST
def about(request: HttpRequest, run_id: int) -> HttpResponse:
    """Write tags and notes; refused, the part comes back with what was typed."""
    run = get_run(run_id)
    tags, notes = request.POST.get("tags", ""), request.POST.get("notes", "")
    problems: list[Problem] = []
    try:
        _write(run, tags, notes)
    except Refused as refused:
        problems = list(refused.problems)
    if "HX-Request" not in request.headers and not problems:
        messages.success(request, "Saved.")
        return redirect(f"{run.get_absolute_url()}#part-about")
    typed = {"typed": tags, "text": notes, "problems": problems} if problems else {}
    found = get_run(run_id)
    return render(request, "runs/parts/about.html", {"run": found, "part": shown(found) | typed})


@transaction.atomic
def _write(run: Run, tags: str, notes: str) -> None:
    actions.set_tags(run, tags.split(","))
    actions.write_notes(run, notes)


@require_POST
def archive(request: HttpRequest, run_id: int) -> HttpResponse:
    run = get_run(run_id)
    try:
        if request.POST.get("archived") == "no":
            actions.unarchive(run)
        else:
            actions.archive(run, person(request).username)
    except Refused as refused:
        for problem in refused.problems:
            messages.error(request, str(problem))
    return redirect(run)
