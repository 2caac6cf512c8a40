"""Add a node: described, then its host key is fetched and shown, and pinned once a person has confirmed it."""

from __future__ import annotations

from django.contrib import messages
from django.core import signing
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from training.spec.lint import Problem, Refused
from webapp.people import person, staff_only

from .. import enrol
from ..forms import NodeForm
from ..models import Identity, Node
from ..ssh import fingerprint

SALT = "fleet.host-key"
SECONDS = 3600


@staff_only("add nodes", "fleet:nodes")
def add(request: HttpRequest) -> HttpResponse:
    form = NodeForm(request.POST or None, initial={"port": 22, "cluster": request.GET.get("cluster", "")})
    if request.method == "POST" and form.is_valid():
        try:
            node = form.construct()
            key = enrol.shown_key(node.address, node.port, jump=node.jump)
        except Refused as refused:
            return _form(request, form, refused.problems)
        return _ask(request, form, key)
    return _form(request, form)


@require_POST
@staff_only("add nodes", "fleet:nodes")
def confirm(request: HttpRequest) -> HttpResponse:
    """Store the node with the key that the person saw: the page carries it, signed."""
    form = NodeForm(request.POST)
    if not form.is_valid():
        return _form(request, form)
    try:
        seen = opened(request.POST.get("seen", ""))
        node = form.construct()
        if way_to(node) != seen[:-1]:
            raise Refused([Problem("address", "it is not the one whose key was shown", "Start again.")])
        node.host_key = seen[-1]
        enrol.put_node(node, form.cleaned_data["cluster"], person(request).get_username())
    except Refused as refused:
        return _form(request, form, refused.problems)
    then = "Press Check now to see whether it can train." if node.python else "Have an interpreter made below."
    messages.success(request, f"{node} is added, its host key pinned. {then}")
    return redirect(node)


def way_to(node: Node) -> list:
    """Return what makes the host that is asked for its key another one."""
    return [node.address, node.port, node.jump_id]


def sealed(node: Node, key: str) -> str:
    return signing.dumps([*way_to(node), key], salt=SALT)


def opened(seen: str) -> list:
    """Return the way to the host, and its key last, as the page showed it; raise Refused."""
    try:
        return list(signing.loads(seen, salt=SALT, max_age=SECONDS))
    except signing.BadSignature:
        raise Refused([Problem("host_key", "the page was open too long, or was changed", "Start again.")]) from None


def _ask(request: HttpRequest, form: NodeForm, key: str) -> HttpResponse:
    node = form.construct()
    context = {
        "form": form,
        "node": node,
        "fingerprint": fingerprint(key),
        "kind": key.split()[0],
        "seen": sealed(node, key),
    }
    return render(request, "fleet/confirm.html", context)


def _form(request: HttpRequest, form: NodeForm, problems: list[Problem] | None = None) -> HttpResponse:
    context = {"form": form, "problems": problems, "identities": Identity.objects.exists()}
    return render(request, "fleet/add.html", context, status=422 if form.is_bound else 200)
