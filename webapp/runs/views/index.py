"""The list of runs: what is going on, and does anything need me?"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.core.paginator import Paginator
from django.db.models import Case, Count, IntegerField, Q, QuerySet, Value, When
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from ..curves import Curve, loss_curves
from ..models import Run
from ..states import ON_NODES, RunState

PAGE = 25
NEEDS_SOMEONE_FOR = timedelta(days=3)
UNDER_WAY = [*ON_NODES, RunState.QUEUED]


def runs(request: HttpRequest) -> HttpResponse:
    state, query = request.GET.get("state", ""), request.GET.get("q", "").strip()
    page = Paginator(found(state, query), PAGE).get_page(request.GET.get("page"))
    curves = loss_curves(list(page.object_list))
    context = {
        "page": page,
        "rows": [(run, curves.get(run.pk, Curve())) for run in page.object_list],
        "state": state,
        "query": query,
        "states": RunState.values,
        "filtered": bool(state or query),
    }
    return render(request, "runs/list.html", context)


def found(state: str, query: str) -> QuerySet[Any]:
    """Return the runs that match, those that need someone first, then those under way, then the newest."""
    rows = ranked(Run.objects.select_related("owner", "cluster"))
    if state:
        rows = rows.filter(state=state)
    if query:
        number = Q(pk=int(query)) if query.isdecimal() and len(query) < 10 else Q()
        rows = rows.filter(Q(name__icontains=query) | Q(owner__username__icontains=query) | number)
    return rows.annotate(node_count=Count("cluster__nodes", distinct=True)).order_by("rank", "-pk")


def ranked(rows: QuerySet[Run]) -> QuerySet[Any]:
    """Annotate `rank`: 0 needs someone, 1 under way, 2 the rest."""
    lately = timezone.now() - NEEDS_SOMEONE_FOR
    lost = Run.objects.filter(
        state__in=ON_NODES, attempts__ended_at=None, attempts__placements__unreachable_since__isnull=False
    ).values("pk")
    needs = Q(state=RunState.FAILED, ended_at__gte=lately) | Q(pk__in=lost)
    return rows.annotate(
        rank=Case(
            When(needs, then=Value(0)),
            When(state__in=UNDER_WAY, then=Value(1)),
            default=Value(2),
            output_field=IntegerField(),
        )
    )
