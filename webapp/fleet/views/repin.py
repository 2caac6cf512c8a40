"""Pin another host key: both fingerprints side by side, then a person's word."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from training.spec.lint import Problem, Refused
from webapp.dispatch import check_node
from webapp.people import person, staff_only

from .. import enrol
from ..models import Node
from ..ssh import fingerprint
from .add import opened, sealed, way_to


@staff_only("pin host keys", "fleet:nodes")
def repin(request: HttpRequest, node_id: int) -> HttpResponse:
    node = get_object_or_404(Node.objects.select_related("jump__identity"), pk=node_id)
    try:
        if request.method == "POST":
            return _pinned(request, node)
        return _ask(request, node, enrol.shown_now(node))
    except Refused as refused:
        return _ask(request, node, "", refused.problems)


def _pinned(request: HttpRequest, node: Node) -> HttpResponse:
    *way, key = opened(request.POST.get("seen", ""))
    if way != way_to(node):
        raise Refused([Problem("address", "it has been changed since the key was shown", "Look at the key again.")])
    enrol.repin(node, key, person(request).get_username())
    check_node(node.pk)
    messages.success(request, f"{node}: the key {fingerprint(key)} is pinned; the node is being checked.")
    return redirect(node)


def _ask(request: HttpRequest, node: Node, key: str, problems: list[Problem] | None = None) -> HttpResponse:
    context = {
        "node": node,
        "pinned": fingerprint(node.host_key),
        "shown": fingerprint(key),
        "kind": key.partition(" ")[0],
        "seen": sealed(node, key) if key else "",
        "problems": problems,
    }
    return render(request, "fleet/repin.html", context, status=422 if problems else 200)
