"""Send an export, and cancel that: both come back to the page they were asked from."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from training.spec.lint import Problem, Refused
from webapp.keys import key_of
from webapp.people import person
from webapp.runs.actions import cancel as cancel_job
from webapp.runs.models import Export

from ..actions import deliver
from ..models import Delivery, Destination
from ..parts import context


@require_POST
def send(request: HttpRequest, export_id: int) -> HttpResponse:
    export = _export(export_id)
    try:
        made = deliver(
            export,
            person(request),
            _destination(request),
            folder=request.POST.get("path", "").strip(),
            name=request.POST.get("name", "").strip(),
            replace=request.POST.get("replace") == "1",
        )
        messages.success(request, f"On its way to {made.place}; how far it is stands beside the export.")
    except Refused as refused:
        messages.error(request, f"Not sent: {refused}")
    return _back(request, export)


def _destination(request: HttpRequest) -> Destination | None:
    chosen = request.POST.get("destination", "")
    if not chosen:
        return None
    found = Destination.objects.filter(pk=key_of(chosen) or 0).first()
    if found is None:
        raise Refused([Problem("destination", "it is not there any more", "Choose another.")])
    return found


@require_POST
def cancel(request: HttpRequest, delivery_id: int) -> HttpResponse:
    found = get_object_or_404(Delivery.objects.select_related("export__checkpoint__attempt__run"), pk=delivery_id)
    try:
        cancel_job(found, person(request).get_username())
        messages.info(request, "The delivery is being cancelled; what has arrived is kept for the next try.")
    except Refused as refused:
        messages.error(request, str(refused))
    return _back(request, found.export)


@never_cache
@require_GET
def part(request: HttpRequest, export_id: int) -> HttpResponse:
    """Answer what became of the deliveries, for a page that is open."""
    return render(request, "deliveries/rows.html", context(_export(export_id), request.user))


def _export(export_id: int) -> Export:
    return get_object_or_404(Export.objects.select_related("checkpoint__attempt__run", "node"), pk=export_id)


def _back(request: HttpRequest, export: Export) -> HttpResponse:
    came_from = request.headers.get("Referer", "")
    if url_has_allowed_host_and_scheme(came_from, allowed_hosts={request.get_host()}):
        return redirect(f"{urlsplit(came_from).path}#deliveries-{export.pk}")
    return redirect(f"{export.run.get_absolute_url()}#deliveries-{export.pk}")
