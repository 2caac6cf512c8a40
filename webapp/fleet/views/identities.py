"""SSH identities: make a key pair and read its public half."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from webapp.people import staff_only

from .. import enrol
from ..forms import IdentityForm
from ..models import Identity


@staff_only("make SSH identities", "fleet:identities", methods=("POST",))
def identities(request: HttpRequest) -> HttpResponse:
    form = IdentityForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        made = enrol.make_identity(form.cleaned_data["name"])
        messages.success(request, f"{made} is made. Put its public key into authorized_keys on the nodes.")
        return redirect("fleet:identities")
    rows = Identity.objects.prefetch_related("nodes").order_by("name")
    return render(request, "fleet/identities.html", {"form": form, "identities": rows})
