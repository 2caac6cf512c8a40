"""The queue: why does mine wait? And what a person can do about it."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from training.spec.lint import Problem, Refused
from webapp.fleet import clusters
from webapp.fleet.models import Cluster
from webapp.keys import key_of
from webapp.people import person, staff_only

from .. import actions, wish_fields
from ..forms import ASKED, priority_typed
from ..models import Pause, Run
from ..queue.show import queues
from ..queue.waiting import waiting
from ..queue.wish import shown, typed
from .find import get_run

PAUSES_SHOWN = 5


@never_cache
@require_GET
def queue(request: HttpRequest) -> HttpResponse:
    past = Pause.objects.exclude(ended_at=None).select_related("cluster")[:PAUSES_SHOWN]
    return render(request, "queue/page.html", _context() | {"clusters": Cluster.objects.all(), "past": past})


@never_cache
@require_GET
def board(request: HttpRequest) -> HttpResponse:
    """Answer the live part alone: the page asks again every few seconds."""
    return render(request, "queue/board.html", _context())


def _context() -> dict[str, Any]:
    return {"queues": queues()}


@require_POST
@staff_only("pause a queue", "queue:queue")
def pause(request: HttpRequest) -> HttpResponse:
    return _act(request, lambda one: actions.pause(one, person(request), request.POST.get("why", "")), "stands still")


@require_POST
@staff_only("let a queue go on", "queue:queue")
def unpause(request: HttpRequest) -> HttpResponse:
    return _act(request, lambda one: actions.unpause(one, person(request)), "goes on")


def _act(request: HttpRequest, act: Any, done: str) -> HttpResponse:
    try:
        cluster = _cluster(request.POST.get("cluster", ""))
        act(cluster)
    except Refused as refused:
        for problem in refused.problems:
            messages.error(request, str(problem))
    else:
        messages.success(request, f"The queue of {cluster or 'all clusters'} {done}.")
    return redirect("queue:queue")


def _cluster(key: str) -> Cluster | None:
    """Return the cluster that a form names; None where it names none, which means all."""
    if not key:
        return None
    found = Cluster.objects.filter(pk=key_of(key) or 0).first()
    if found is None:
        raise Refused([Problem("cluster", f"there is none with number {key[:20]}", "Choose one of the list.")])
    return found


def move(request: HttpRequest, run_id: int) -> HttpResponse:
    """Show where a run would like to train, and have it train elsewhere, or sooner or later."""
    run = get_run(run_id)
    asked = shown(run.wished()) | {"priority": str(run.priority), "cluster": str(run.cluster_id)}
    if request.method != "POST":
        return _form(request, run, asked)
    asked |= {name: str(request.POST.get(name, asked[name])) for name in (*ASKED, "cluster")}
    try:
        _move(request, run, asked)
    except Refused as refused:
        return _form(request, get_run(run_id), asked, refused.problems)
    messages.success(request, "Done: it is where it should be." if run.state != "queued" else "Done: it waits there.")
    return redirect(run)


@transaction.atomic
def _move(request: HttpRequest, run: Run, asked: dict[str, str]) -> None:
    cluster = _cluster(asked["cluster"]) or run.cluster
    actions.move(run, cluster, typed(asked), person(request))
    actions.prioritise(run, priority_typed(asked["priority"]), person(request))


def _form(request: HttpRequest, run: Run, asked: dict[str, str], problems: list[Problem] | None = None) -> HttpResponse:
    context = {
        "run": run,
        "cluster": asked["cluster"],
        "clusters": clusters.with_nodes(),
        "wish_fields": wish_fields.fields(asked, problems or []),
        "problems": problems or [],
        "movable": run.state in actions.MOVABLE,
        "waiting": waiting(run),
    }
    return render(request, "queue/move.html", context, status=422 if problems else 200)
