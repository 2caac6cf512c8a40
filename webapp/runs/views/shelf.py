"""Checkpoints and exports of all runs: what can I take home, and is it good?"""

from __future__ import annotations

from django.core.paginator import Paginator
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from webapp.keys import key_of

from ..models import Checkpoint, Export, Run
from ..shelf import rows
from ..shelf.totals import Totals

PAGE = 25
RUNS_SHOWN = 10
KINDS = {"": "usable", "exported": "exported", "pinned": "pinned", "incomplete": "incomplete", "deleted": "deleted",
         "all": "all"}  # fmt: skip


@never_cache
@require_GET
def shelf(request: HttpRequest) -> HttpResponse:
    kind, key = request.GET.get("show", ""), key_of(request.GET.get("run", ""))
    run = Run.objects.filter(pk=key).first() if key else None
    query = request.GET.get("q", "").strip()
    found = rows.everywhere().filter(_of_kind(kind))
    if key:
        found = found.filter(attempt__run=key)
    if query:
        found = found.filter(Q(attempt__run__name__icontains=query) | Q(notes__icontains=query))
    page = Paginator(found, PAGE).get_page(request.GET.get("page"))
    taken = Totals.now()
    context = {
        "page": page,
        "rows": rows.made(page.object_list),
        "run": run,
        "kind": kind,
        "kinds": KINDS,
        "query": query,
        "others": Checkpoint.objects.exists(),
        "filtered": bool(kind or key or query),
        "totals": taken,
        "largest": taken.runs[:RUNS_SHOWN],
    }
    return render(request, "runs/shelf.html", context)


def _of_kind(kind: str) -> Q:
    there = Q(deleted_at=None, delete_asked_at=None)
    return {
        "all": Q(),
        "exported": Q(pk__in=Export.objects.filter(state="ready").values("checkpoint")),
        "pinned": there & Q(pinned=True),
        "incomplete": there & Q(completed_at=None),
        "deleted": ~there,
    }.get(kind, there & Q(completed_at__isnull=False))
