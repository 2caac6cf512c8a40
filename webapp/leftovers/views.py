"""Leftovers: what runs on my nodes that should not?"""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from training.spec.lint import Refused
from webapp.fleet.models import Node
from webapp.people import person, staff_only

from . import actions
from .models import Leftover, NodeLook

ENDED_SHOWN = 20


@never_cache
@require_GET
def page(request: HttpRequest) -> HttpResponse:
    return render(request, "leftovers/page.html", _context())


@never_cache
@require_GET
def rows(request: HttpRequest) -> HttpResponse:
    """Answer the rows alone: the page asks again every few seconds."""
    return render(request, "leftovers/rows.html", _context())


def _context() -> dict[str, Any]:
    found = list(actions.there().select_related("node"))
    ended = Leftover.objects.exclude(ended_at=None).select_related("node").order_by("-ended_at")[:ENDED_SHOWN]
    nodes = list(actions.nodes().select_related("look").order_by("name"))
    asked = [look.asked_at for node in nodes if (look := _look(node)) and look.asked_at]
    return {
        "leftovers": found,
        "ended": ended,
        "unanswered": [(node, why) for node in nodes if (why := _unanswered(node))],
        "drained": [node for node in nodes if not node.in_service],
        "asked": min(asked, default=None),
        "nodes": len(nodes),
    }


def _look(node: Node) -> NodeLook | None:
    return getattr(node, "look", None)


def _unanswered(node: Node) -> str:
    """Return why it is not known what runs there now; "" where it is."""
    look = _look(node)
    if look is None or (look.asked_at is None and not look.problem):
        return "not asked yet."
    return look.problem


@require_POST
def look(request: HttpRequest) -> HttpResponse:
    count = actions.look()
    messages.info(request, f"{count} node{'s are' if count != 1 else ' is'} being asked.")
    return redirect("leftovers:page")


@staff_only("end what is left on nodes", "leftovers:page")
@require_http_methods(["GET", "HEAD", "POST"])
def end(request: HttpRequest, leftover_id: int) -> HttpResponse:
    """Say what will be ended, on a page of its own that nothing redraws; then end it."""
    row = get_object_or_404(Leftover.objects.select_related("node"), pk=leftover_id)
    if request.method != "POST":
        return render(request, "leftovers/end.html", {"row": row})
    try:
        actions.end(row, person(request).get_username())
    except Refused as refused:
        messages.error(request, " ".join(map(str, refused.problems)))
    else:
        messages.success(request, f"Its end on {row.node} is asked for; the row says when it is proven.")
    return redirect("leftovers:page")
