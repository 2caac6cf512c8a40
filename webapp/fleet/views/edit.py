"""Change what is said of a node. Its key stays pinned: another host at its address is refused, as before."""

from __future__ import annotations

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from training.spec.lint import Problem, Refused
from webapp.dispatch import check_node
from webapp.people import person, staff_only

from .. import enrol
from ..forms import NodeForm
from ..models import Node


@staff_only("change nodes", "fleet:nodes")
@transaction.atomic
def edit(request: HttpRequest, node_id: int) -> HttpResponse:
    """Held while it is kept: the row is stored whole, and a worker may be giving it an interpreter."""
    node = get_object_or_404(
        Node.objects.select_related("cluster").select_for_update(of=("self",), no_key=True), pk=node_id
    )
    form = NodeForm(request.POST or None, instance=node, initial={"cluster": node.cluster.name})
    if request.method != "POST" or not form.is_valid():
        return _form(request, form)
    served = node.in_service
    try:
        enrol.put_node(form.instance, form.cleaned_data["cluster"], person(request).get_username())
    except Refused as refused:
        return _form(request, form, refused.problems)
    check_node(node.pk)
    out = "; it is out of service until it has an interpreter" if served and not form.instance.in_service else ""
    messages.success(request, f"{form.instance} is changed, and is being checked{out}.")
    return redirect(form.instance)


def _form(request: HttpRequest, form: NodeForm, problems: list[Problem] | None = None) -> HttpResponse:
    stored = Node.objects.get(pk=form.instance.pk)  # the form has written what was typed onto its own
    context = {"form": form, "node": stored, "problems": problems}
    return render(request, "fleet/edit.html", context, status=422 if form.is_bound else 200)
