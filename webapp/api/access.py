"""Who asks: a bearer token, or for reading alone a browser's session.

A session never changes anything here, so no request forged by a foreign page can.
"""

from __future__ import annotations

from datetime import timedelta

from django.contrib.auth.base_user import AbstractBaseUser
from django.db.models import Q
from django.http import HttpRequest
from django.utils import timezone
from ninja.security import HttpBearer

from webapp.accounts.models import Token
from webapp.accounts.models.token import Scope

from .problems import Stop

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
USED_EVERY = timedelta(minutes=1)  # how fine `last_used_at` is: a poller must not write a row a request
WAY_OUT = "Send `Authorization: Bearer TOKEN`; `manage.py create_token USER` or the page Tokens makes one."


class Access(HttpBearer):
    """Sets request.user; returns it. Raises Stop with 401 or 403."""

    def __call__(self, request: HttpRequest) -> AbstractBaseUser:
        header = request.headers.get("Authorization")
        user = self.authenticate(request, _secret(header)) if header is not None else _of_session(request)
        request.user = user  # type: ignore[assignment]
        return user

    def authenticate(self, request: HttpRequest, token: str) -> AbstractBaseUser:
        found = Token.find(token)
        if found is None:
            raise Stop(
                401, "Authorization", "the token is wrong, expired or revoked, or its user may not log in", WAY_OUT
            )
        if request.method not in SAFE and found.scope != Scope.WRITE:
            raise Stop(403, "Authorization", "the token may only read", "Use a token with the scope `write`.")
        _mark_used(found)
        return found.user


def _secret(header: str) -> str:
    scheme, _, secret = header.partition(" ")
    if scheme.lower() != "bearer" or not secret.strip():
        raise Stop(401, "Authorization", "it is not a bearer token", WAY_OUT)
    return secret.strip()


def _of_session(request: HttpRequest) -> AbstractBaseUser:
    if request.user.is_authenticated and request.method in SAFE:
        return request.user
    raise Stop(401, "Authorization", "there is no token", WAY_OUT)


def _mark_used(token: Token) -> None:
    now = timezone.now()
    stale = Q(last_used_at=None) | Q(last_used_at__lt=now - USED_EVERY)
    if token.last_used_at is None or token.last_used_at < now - USED_EVERY:
        Token.objects.filter(stale, pk=token.pk).update(last_used_at=now)
