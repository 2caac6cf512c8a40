"""The preflight page of a cluster."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from training.spec.lint import Refused
from webapp.fleet.models import Cluster
from webapp.keys import key_of
from webapp.people import person

from . import actions
from .page import PAST, grid, newest


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest, name: str) -> HttpResponse:
    """Show the newest preflight, or the one that `id` names; a POST asks for a new one."""
    cluster = get_object_or_404(Cluster, name=name)
    if request.method == "POST":
        return _asked(request, cluster)
    key = key_of(request.GET.get("id", ""))
    found = newest(cluster, key)
    if "id" in request.GET and (key is None or found is None):
        raise Http404("no such preflight")
    context = {
        "cluster": cluster,
        "grid": grid(found) if found else None,
        "past": cluster.preflights.select_related("attempt")[:PAST],
        "empty": not cluster.nodes.filter(removed_at=None).exists(),
    }
    return render(request, "preflights/page.html", context)


@never_cache
@require_GET
def part(request: HttpRequest, name: str, preflight_id: int) -> HttpResponse:
    """Answer the grid alone: the page asks again while it fills."""
    found = newest(get_object_or_404(Cluster, name=name), preflight_id)
    if found is None:
        raise Http404("no such preflight")
    return render(request, "preflights/grid.html", {"grid": grid(found)})


def _asked(request: HttpRequest, cluster: Cluster) -> HttpResponse:
    try:
        return redirect(actions.ask(cluster, person(request).get_username()))
    except Refused as refused:
        for problem in refused.problems:
            messages.error(request, str(problem))
        return redirect("preflights:page", cluster.name)
