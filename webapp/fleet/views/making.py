"""A node's interpreter: which there are, one being made with its progress, and what came of the last making."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from training.spec.lint import Refused
from webapp.dispatch import find_pythons
from webapp.people import person, staff_only

from .. import provisioning
from ..models import Node, Provision

ACT = ("make interpreters", "fleet:nodes")


def context(node: Node) -> dict[str, Any]:
    """Return what fleet/interpreter.html shows."""
    return {"node": node, "making": Provision.objects.filter(node=node).first()}


@never_cache
@require_GET
def interpreter(request: HttpRequest, node_id: int) -> HttpResponse:
    """Answer that part of the node's page; it asks again while one is made."""
    return render(request, "fleet/interpreter.html", context(get_object_or_404(Node, pk=node_id)))


@require_POST
@staff_only(*ACT)
def make_interpreter(request: HttpRequest, node_id: int) -> HttpResponse:
    """`path`, where something is typed there, goes before the chosen `base`."""
    node = get_object_or_404(Node, pk=node_id)
    base = (request.POST.get("path") or request.POST.get("base") or "").strip()
    try:
        provisioning.provision(node, person(request).get_username(), base=base, gpu=request.POST.get("gpu") == "1")
    except Refused as refused:
        messages.error(request, " ".join(map(str, refused.problems)))
    else:
        messages.success(request, f"An interpreter is being made on {node}; how far it is stands below.")
    return redirect(node)


@require_POST
@staff_only(*ACT)
def stop_making(request: HttpRequest, node_id: int) -> HttpResponse:
    node = get_object_or_404(Node, pk=node_id)
    for found in node.provisions.filter(ended_at=None):
        provisioning.cancel(found, person(request).get_username())
    messages.info(request, f"The making of an interpreter on {node} is being stopped.")
    return redirect(node)


@require_POST
@staff_only(*ACT)
def look_for_pythons(request: HttpRequest, node_id: int) -> HttpResponse:
    node = get_object_or_404(Node, pk=node_id)
    find_pythons(node.pk)
    messages.info(request, f"{node} is asked which interpreters it has; load the page again in a few seconds.")
    return redirect(node)
