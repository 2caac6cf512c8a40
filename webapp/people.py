"""Who asks, on pages that only a person who is logged in can reach."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.http import HttpRequest


def person(request: HttpRequest) -> User:
    """Return the person. LoginRequiredMiddleware has sent everybody else to the log-in."""
    assert isinstance(request.user, User)
    return request.user
