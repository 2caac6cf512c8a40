"""Where exports can be sent: the list for everybody, the rest for staff."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_POST

from training.spec.lint import Problem, Refused
from webapp.people import person, staff_only

from .. import places
from ..forms import form_of
from ..models import Destination
from ..models.destination import KINDS

BACK = "deliveries:destinations"


@require_GET
def index(request: HttpRequest) -> HttpResponse:
    rows = Destination.objects.select_related("node", "made_by").prefetch_related("deliveries")
    return render(request, "deliveries/destinations.html", {"destinations": rows, "kinds": KINDS})


@staff_only("add destinations", BACK)
def add(request: HttpRequest, kind: str) -> HttpResponse:
    if kind not in KINDS:
        raise Http404(f"no kind of destination is called {kind[:20]}")
    return _edit(request, Destination(kind=kind))


@staff_only("change destinations", BACK)
def edit(request: HttpRequest, destination_id: int) -> HttpResponse:
    return _edit(request, get_object_or_404(Destination, pk=destination_id))


def _edit(request: HttpRequest, destination: Destination) -> HttpResponse:
    form = form_of(destination.kind)(request.POST or None, instance=destination)
    problems: list[Problem] = []
    if request.method == "POST" and form.is_valid():
        try:
            places.save(form.described(), form.settings(), form.secrets(), person(request))
            messages.success(request, f"{destination} is kept. Send to… beside a ready export offers it.")
            return redirect(BACK)
        except Refused as refused:
            problems = refused.problems
    context = {
        "form": form,
        "destination": destination,
        "saved_name": Destination.objects.filter(pk=destination.pk).values_list("name", flat=True).first(),
        "what": KINDS[destination.kind],
        "problems": problems,
    }
    return render(request, "deliveries/destination.html", context, status=422 if form.is_bound else 200)


@require_POST
@staff_only("change destinations", BACK)
def forget(request: HttpRequest, destination_id: int) -> HttpResponse:
    destination = get_object_or_404(Destination, pk=destination_id)
    places.forget_secrets(destination)
    messages.success(request, f"The secret of {destination} is deleted; sending there is refused until one is entered.")
    return redirect("deliveries:edit", destination_id)


@require_POST
@staff_only("delete destinations", BACK)
def delete(request: HttpRequest, destination_id: int) -> HttpResponse:
    destination = get_object_or_404(Destination, pk=destination_id)
    name = str(destination)
    try:
        places.delete(destination)
        messages.success(request, f"{name} is deleted; what was sent there stays.")
    except Refused as refused:
        messages.error(request, f"{name} is not deleted: {refused}")
    return redirect(BACK)
