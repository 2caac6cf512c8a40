"""An export's page: can I trust it, what is it made of, and how do I get it? While it runs: how far is it?"""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from training.spec.lint import Refused
from webapp.people import person

from .. import actions, downloads, export_page
from ..models import Export
from .act import checkpoint_named
from .find import get_run


@never_cache
@require_GET
def export(request: HttpRequest, export_id: int) -> HttpResponse:
    found = _export(export_id)
    return render(request, "exports/detail.html", export_page.whole(found, request.build_absolute_uri("/")))


@never_cache
@require_GET
def part(request: HttpRequest, export_id: int) -> HttpResponse:
    """Answer all but the frame, which asks for it again while the export has not ended."""
    found = _export(export_id)
    return render(request, "exports/body.html", export_page.whole(found, request.build_absolute_uri("/")))


@never_cache
@require_GET
def panel(request: HttpRequest, export_id: int) -> HttpResponse:
    """Answer the plan alone, as it stands under the question whether to export."""
    return render(request, "exports/panel.html", export_page.planned(_export(export_id)))


@require_POST
def plan(request: HttpRequest, run_id: int) -> HttpResponse:
    """Ask what the export in the form would be; nothing is started."""
    run = get_run(run_id)
    chosen = request.POST.get("dtype", ""), request.POST.get("adapter", "")
    try:
        found = actions.plan(run, person(request), checkpoint_named(request, run), *chosen)
    except Refused as refused:
        return render(request, "exports/panel.html", {"refused": refused.problems})
    return render(request, "exports/panel.html", export_page.planned(found))


@require_POST
def start(request: HttpRequest, export_id: int) -> HttpResponse:
    return _act(request, export_id, actions.start, "Started.")


@require_POST
def cancel(request: HttpRequest, export_id: int) -> HttpResponse:
    return _act(request, export_id, actions.cancel, "")  # its page says how far that is, and stops saying so


@require_POST
def resume(request: HttpRequest, export_id: int) -> HttpResponse:
    return _act(request, export_id, actions.go_on, "Resumed: it goes on from what it has written.")


async def card(request: HttpRequest, export_id: int) -> HttpResponse:
    """Answer the model card, read from the node that has it."""
    try:
        text = await downloads.text(export_id, "README.md")
    except downloads.CannotSend as error:
        text = f"It can't be shown now. {error}"
    return HttpResponse(text, content_type="text/plain; charset=utf-8")


def _act(request: HttpRequest, export_id: int, act: Callable[[Export, str], object], done: str) -> HttpResponse:
    found = _export(export_id)
    try:
        act(found, person(request).username)
    except Refused as refused:
        for problem in refused.problems:
            messages.error(request, str(problem))
    else:
        if done:
            messages.success(request, done)
    return redirect(found)


def _export(export_id: int) -> Export:
    rows = Export.objects.select_related("checkpoint__attempt__run", "node", "requested_by")
    return get_object_or_404(rows, pk=export_id)
