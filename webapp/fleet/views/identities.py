"""SSH identities: make a key pair or paste one in, replace its key, delete it."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from training.spec.lint import Problem, Refused
from webapp.people import person, staff_only

from .. import enrol
from .. import identities as acts
from ..forms import AgentForm, IdentityForm, PasteForm
from ..models import Identity, NextKey
from ..ssh import fingerprint

ACT = ("make SSH identities", "fleet:identities")


@staff_only(*ACT, methods=("POST",))
def identities(request: HttpRequest) -> HttpResponse:
    form = IdentityForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        made = enrol.make_identity(form.cleaned_data["name"])
        messages.success(request, f"{made} is made. Put its public key into authorized_keys on the nodes.")
        return redirect("fleet:identities")
    return _list(request, form=form)


@require_POST
@staff_only(*ACT)
def paste(request: HttpRequest) -> HttpResponse:
    form = PasteForm(request.POST)
    if not form.is_valid():
        return _list(request, paste_form=form, status=422)
    try:
        made = acts.paste(form.cleaned_data["name"], form.cleaned_data["private_key"])
    except Refused as refused:
        return _list(request, paste_form=form, problems=refused.problems, status=422)
    messages.success(request, f"{made} is kept, its private key sealed.")
    return redirect("fleet:identities")


@staff_only(*ACT)
def agent(request: HttpRequest) -> HttpResponse:
    """Choose one of the keys that the service's SSH agent holds."""
    try:
        form = AgentForm(acts.agent_keys(), request.POST or None)
        if request.method == "POST" and form.is_valid():
            made = acts.from_agent(form.cleaned_data["name"], form.cleaned_data["public_key"])
            messages.success(request, f"{made} is kept; the SSH agent holds its private half.")
            return redirect("fleet:identities")
    except Refused as refused:
        return render(request, "fleet/agent.html", {"problems": refused.problems}, status=422)
    return render(request, "fleet/agent.html", {"form": form}, status=422 if form.is_bound else 200)


def _list(request: HttpRequest, *, status: int = 200, **context: Any) -> HttpResponse:
    rows = Identity.objects.prefetch_related("nodes").select_related("next_key").order_by("name")
    found = [(row, fingerprint(row.public_key), [n for n in row.nodes.all() if not n.removed_at]) for row in rows]
    empty = {"form": IdentityForm(), "paste_form": PasteForm(), "identities": found}
    return render(request, "fleet/identities.html", empty | context, status=status)


@require_POST
@staff_only(*ACT)
def delete_identity(request: HttpRequest, identity_id: int) -> HttpResponse:
    identity = get_object_or_404(Identity, pk=identity_id)
    try:
        acts.delete(identity)
    except Refused as refused:
        messages.error(request, " ".join(map(str, refused.problems)))
    else:
        messages.success(request, f"{identity} is deleted, and its private key with it.")
    return redirect("fleet:identities")


@never_cache
@staff_only("replace keys", "fleet:identities")
def replace_key(request: HttpRequest, identity_id: int) -> HttpResponse:
    """Make the next key, have it tried, take it, or let it go: the button's `do` says which."""
    identity = get_object_or_404(Identity, pk=identity_id)
    if request.method != "POST":
        return _replacement(request, identity)
    try:
        _do(request.POST.get("do", ""), identity, person(request).get_username())
    except Refused as refused:
        return _replacement(request, identity, refused.problems)
    if request.POST.get("do") == "finish":
        messages.success(request, f"{identity} has its new key. The old one can go from authorized_keys on the nodes.")
        return redirect("fleet:identities")
    return redirect("fleet:replace_key", identity.pk)


def _do(act: str, identity: Identity, actor: str) -> None:
    following = NextKey.objects.filter(identity=identity).first()
    if act == "begin":
        acts.begin_replacement(identity, actor)
    elif act == "finish":
        acts.finish_replacement(identity, actor)
    elif act == "try" and following:
        acts.ask_try(following)
    elif act == "drop" and following:
        following.delete()


@never_cache
@require_GET
@staff_only("replace keys", "fleet:identities")
def next_key(request: HttpRequest, identity_id: int) -> HttpResponse:
    """Answer what the nodes said to the next key; the page asks again while it is tried."""
    return render(request, "fleet/next_key.html", _context(get_object_or_404(Identity, pk=identity_id)))


def _replacement(request: HttpRequest, identity: Identity, problems: list[Problem] | None = None) -> HttpResponse:
    context = _context(identity) | {"problems": problems}
    return render(request, "fleet/replace_key.html", context, status=422 if problems else 200)


def _context(identity: Identity) -> dict[str, Any]:
    following = NextKey.objects.filter(identity=identity).first()
    answers = following.answers() if following else []
    return {
        "identity": identity,
        "old": fingerprint(identity.public_key),
        "following": following,
        "new": fingerprint(following.public_key) if following else "",
        "answers": answers,
        "all_let_in": all(why == "" for _, why in answers),
    }
