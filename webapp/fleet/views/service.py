"""Take a node out of service and back, remove it and bring it back."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from training.spec.lint import Refused
from webapp.people import person, staff_only

from .. import actions, uses
from ..models import Node


@require_POST
@staff_only("take nodes out of service or back", "fleet:nodes")
def service(request: HttpRequest, node_id: int) -> HttpResponse:
    """Take a node out of service or back. What runs on it goes on."""
    node = get_object_or_404(Node, pk=node_id)
    actor = person(request).get_username()
    try:
        if request.POST.get("in_service") == "1":
            actions.restore(node, actor)
        else:
            actions.drain(node, actor, request.POST.get("why", ""))
    except Refused as refused:
        messages.error(request, " ".join(map(str, refused.problems)))
        return redirect(node)
    done = "is in service again" if node.in_service else "gets no new run; what runs on it goes on"
    messages.success(request, f"{node} {done}.")
    return redirect(node)


@staff_only("remove nodes", "fleet:nodes")
def remove(request: HttpRequest, node_id: int) -> HttpResponse:
    """Say what keeps the node, what would be lost, and what stays; then remove it."""
    node = get_object_or_404(Node, pk=node_id)
    context = {"node": node, "in_use": uses.in_use(node), "lost": uses.losses(node)}
    if request.method != "POST":
        return render(request, "fleet/remove.html", context)
    try:
        gone = actions.remove(node, person(request).get_username(), even_so=request.POST.get("even_so") == "1")
    except Refused as refused:
        return render(request, "fleet/remove.html", context | {"problems": refused.problems}, status=422)
    messages.success(request, f"{node} is removed{'' if gone else '; its runs keep their history'}.")
    return redirect("fleet:nodes")


@require_POST
@staff_only("bring nodes back", "fleet:nodes")
def bring_back(request: HttpRequest, node_id: int) -> HttpResponse:
    node = get_object_or_404(Node, pk=node_id)
    try:
        actions.bring_back(node, person(request).get_username())
    except Refused as refused:
        messages.error(request, " ".join(map(str, refused.problems)))
        return redirect("fleet:nodes")
    messages.success(request, f"{node} is back, out of service: check it, then return it to service.")
    return redirect(node)
