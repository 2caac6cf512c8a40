"""Make a subscription of what a checked form says."""

from __future__ import annotations

import secrets
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from training.spec.lint import Problem, Refused

from . import addresses
from .models import Subscription

MOST = 50  # of one person


@transaction.atomic
def subscribe(user: User, said: dict[str, Any], site: str) -> tuple[Subscription, str]:
    """Return the subscription, and of a webhook the secret that signs its messages, which is shown this once."""
    User.objects.select_for_update().get(pk=user.pk)
    if Subscription.objects.filter(user=user).count() >= MOST:
        raise Refused([Problem("subscription", f"you have {MOST} of them", "Delete one that you don't need.")])
    scope, kinds = said["scope"], said["kinds"]
    made = Subscription(user=user, way=said["way"], scope=scope, kinds=kinds, site=site.rstrip("/")[:300])
    made.run_id = said["run"] if scope == Subscription.Scope.RUN else None
    secret = ""
    if made.way == Subscription.Way.EMAIL:
        made.address = said["address"]
    else:
        made.url, made.shown = said["url"], addresses.parse(said["url"]).shown
        made.secret = secret = secrets.token_urlsafe(32)
    made.save()
    return made, secret
