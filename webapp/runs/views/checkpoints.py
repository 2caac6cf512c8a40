"""Checkpoints of a run: which there are, what each is good for, and the buttons to pin, note and delete."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from training.spec.lint import Problem, Refused
from webapp.keys import key_of
from webapp.people import person
from webapp.show import size

from .. import actions
from ..models import Checkpoint, Run
from ..shelf import doom, room, rows
from ..shelf.fates import kept
from .find import get_run


@never_cache
@require_GET
def checkpoints(request: HttpRequest, run_id: int) -> HttpResponse:
    run = get_run(run_id)
    found = rows.of_run(run)
    context = {
        "run": run,
        "rows": found,
        "superfluous": len(doom.superfluous(run)),
        "kept": kept(run),
        "room": room.tightest(room.rooms(run)),
    }
    return render(request, "runs/checkpoints.html", context)


@never_cache
@require_GET
def row(request: HttpRequest, run_id: int, checkpoint_id: int) -> HttpResponse:
    """Answer one row alone: it is asked for again while nodes have yet to do something."""
    found = get_object_or_404(rows.everywhere(), attempt__run=run_id, pk=checkpoint_id)
    return render(
        request,
        "runs/checkpoint_row.html",
        {"run": found.attempt.run, "row": rows.with_fates(found.attempt.run, rows.made([found]))[0]},
    )


@never_cache
@require_GET
def doomed(request: HttpRequest, run_id: int) -> HttpResponse:
    """Say what a deletion would take, and ask: in a dialog, or as a page of its own."""
    run = get_run(run_id)
    try:
        return _ask(request, run, doom.doom(run, _chosen(request, run)))
    except Refused as refused:
        return _ask(request, run, doom.Doom([], {}, refused.problems))


def _ask(request: HttpRequest, run: Run, found: doom.Doom) -> HttpResponse:
    inside = request.headers.get("HX-Request") == "true"
    name = "runs/doomed.html" if inside else "runs/doomed_page.html"
    return render(request, name, {"run": run, "doom": found, "inside": inside})


@require_POST
def delete(request: HttpRequest, run_id: int) -> HttpResponse:
    run = get_run(run_id)
    try:
        even_last = request.POST.get("even_last") == "yes"
        found = actions.delete_checkpoints(run, _chosen(request, run), person(request).username, even_last=even_last)
    except Refused as refused:
        _say(request, refused)
    else:
        count = len(found.checkpoints)
        text = f"{count} checkpoint{'s are' if count != 1 else ' is'} being deleted: about {size(found.bytes)}."
        messages.success(request, text)
    return redirect("runs:checkpoints", run.pk)


@require_POST
def pin(request: HttpRequest, run_id: int, checkpoint_id: int) -> HttpResponse:
    wanted = request.POST.get("pinned") == "yes"
    done = "Pinned: its nodes are told now." if wanted else "Unpinned: the rule of retention decides again."
    return _act(request, run_id, checkpoint_id, lambda row: actions.pin_checkpoint(row, wanted, _who(request)), done)


@require_POST
def note(request: HttpRequest, run_id: int, checkpoint_id: int) -> HttpResponse:
    text = request.POST.get("notes", "")
    return _act(request, run_id, checkpoint_id, lambda row: actions.note_checkpoint(row, text, _who(request)), "Noted.")


@require_POST
def look(request: HttpRequest, run_id: int, checkpoint_id: int) -> HttpResponse:
    return _act(request, run_id, checkpoint_id, actions.look_at_checkpoint, "Its nodes are asked what lies there.")


def _act(
    request: HttpRequest, run_id: int, checkpoint_id: int, act: Callable[[Checkpoint], None], done: str
) -> HttpResponse:
    row = get_object_or_404(Checkpoint.objects.select_related("attempt__run"), attempt__run=run_id, pk=checkpoint_id)
    try:
        act(row)
    except Refused as refused:
        _say(request, refused)
    else:
        messages.success(request, done)
    return redirect(row)


def _who(request: HttpRequest) -> str:
    return person(request).username


def _say(request: HttpRequest, refused: Refused) -> None:
    for problem in refused.problems:
        messages.error(request, str(problem))


def _chosen(request: HttpRequest, run: Run) -> list[Checkpoint]:
    """Return what the form names: single checkpoints, or all that is superfluous."""
    asked = request.POST if request.method == "POST" else request.GET
    if asked.get("which") == "superfluous":
        found = doom.superfluous(run)
    else:
        keys = {key_of(key) or 0 for key in asked.getlist("checkpoint")}
        found = list(Checkpoint.objects.filter(attempt__run=run, pk__in=keys).select_related("attempt"))
    if not found:
        raise Refused([Problem("checkpoint", "none of this run's is chosen", "Tick those that shall go.")])
    return found
