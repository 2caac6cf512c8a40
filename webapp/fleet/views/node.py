"""One node: can it train, what is on it, what was on it, and who changed what."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from webapp.runs.models import Placement

from .. import holders
from ..cards import cards
from ..models import Node
from . import making

SHOWN = 30  # rows of each history


@never_cache
@require_GET
def node(request: HttpRequest, name: str) -> HttpResponse:
    return render(request, "fleet/node.html", context(_node(name=name)))


@never_cache
@require_GET
def now(request: HttpRequest, node_id: int) -> HttpResponse:
    """Answer the part that changes by itself; the page asks again every few seconds."""
    return render(request, "fleet/node_now.html", context(_node(pk=node_id)))


def _node(**key: Any) -> Node:
    return get_object_or_404(Node.objects.select_related("cluster", "identity", "jump"), **key)


def context(found: Node) -> dict[str, Any]:
    placements = Placement.objects.filter(node=found).select_related("attempt__run").order_by("-attempt_id")
    return making.context(found) | {
        "card": cards([found])[0],
        "jobs": holders.jobs(found),
        "behind": found.behind.filter(removed_at=None),
        "placements": placements[:SHOWN],
        "placements_count": placements.count(),
        "changes": found.changes.all()[:SHOWN],
        "changes_count": found.changes.count(),
    }
