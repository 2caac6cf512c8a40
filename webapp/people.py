"""Who asks, on pages that only a person who is logged in can reach."""

from __future__ import annotations

from collections.abc import Callable, Container
from functools import wraps

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse


def person(request: HttpRequest) -> User:
    """Return the person. LoginRequiredMiddleware has sent everybody else to the log-in."""
    assert isinstance(request.user, User)
    return request.user


View = Callable[..., HttpResponse]


def staff_only(act: str, back: str, *, methods: Container[str] = ("GET", "HEAD", "POST")) -> Callable[[View], View]:
    """Let only staff use a view by these methods; others get a page that says so. `back`: name of the page to go to."""

    def only(view: View) -> View:
        @wraps(view)
        def guarded(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
            if request.method in methods and not person(request).is_staff:
                return render(request, "staff_only.html", {"act": act, "back": reverse(back)}, status=403)
            return view(request, *args, **kwargs)

        return guarded

    return only
