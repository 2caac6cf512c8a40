"""A person's subscriptions: listed with what became of their messages, made, tried out, deleted. Only one's own."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from training.spec.lint import Refused
from webapp.keys import key_of
from webapp.people import person

from . import telling
from .forms import SubscriptionForm
from .models import Sending, Subscription
from .subscribing import subscribe

SHOWN = 3  # messages of each subscription
SOON = timedelta(minutes=3)  # in which a try is waited for on an open page


@never_cache
def index(request: HttpRequest) -> HttpResponse:
    user, made, secret = person(request), None, ""
    form = SubscriptionForm(request.POST or None, initial=_beginning(request, user))
    if request.method == "POST" and form.is_valid():
        try:
            made, secret = subscribe(user, form.cleaned_data, request.build_absolute_uri("/"))
            form = SubscriptionForm(initial=_beginning(request, user))
        except Refused as refused:
            form.add_error(None, str(refused))
    context = {"form": form, "made": made, "secret": secret, "mail": bool(settings.EMAIL_HOST), **rows(user)}
    return render(request, "notices/page.html", context, status=422 if form.is_bound else 200)


def _beginning(request: HttpRequest, user: User) -> dict[str, Any]:
    """What the form begins with: from a run's page it is that run."""
    run = key_of(request.GET.get("run", ""))
    return {"address": user.email} | ({"scope": Subscription.Scope.RUN, "run": run} if run else {})


def rows(user: User) -> dict[str, Any]:
    """Return what `notices/rows.html` takes."""
    found = [(row, list(row.sendings.all()[:SHOWN])) for row in Subscription.objects.filter(user=user)]
    soon = timezone.now() + SOON
    waits = Sending.objects.waiting().filter(subscription__user=user, due_at__lt=soon).exists()
    return {"subscriptions": found, "waits": waits, "can_mail": bool(settings.EMAIL_HOST)}


@never_cache
@require_GET
def part(request: HttpRequest) -> HttpResponse:
    return render(request, "notices/rows.html", rows(person(request)))


@require_POST
def test(request: HttpRequest, subscription_id: int) -> HttpResponse:
    found = get_object_or_404(Subscription, pk=subscription_id, user=person(request))
    if not found.sendings.waiting().filter(key__startswith="test:").exists():  # one at a time is enough to see
        telling.test(found)
    messages.info(request, f"A test is on its way to {found.where}; what becomes of it stands beside it.")
    return redirect("notices:index")


@require_POST
def delete(request: HttpRequest, subscription_id: int) -> HttpResponse:
    found = get_object_or_404(Subscription, pk=subscription_id, user=person(request))
    where = found.where
    found.delete()
    messages.success(request, f"Nothing more is sent to {where} by this subscription.")
    return redirect("notices:index")
