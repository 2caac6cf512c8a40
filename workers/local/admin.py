"""The first account."""

from __future__ import annotations

import secrets

from django.contrib.auth.models import User
from django.db import connection

ADMIN = "admin"


def ensure_admin(given: str) -> str | None:
    """Make the account where there is none; return its password if it was made up here, to be shown once.

    `given`, where not empty, becomes the password, of an account that is there already too.
    """
    try:
        return _ensure(given)
    finally:
        connection.close()


def _ensure(given: str) -> str | None:
    user = User.objects.filter(username=ADMIN).first()
    if user is None:
        password = given or secrets.token_urlsafe(12)
        User.objects.create_superuser(ADMIN, password=password)
        return None if given else password
    if given and not user.check_password(given):
        user.set_password(given)
        user.save(update_fields=["password"])
    return None


def admin() -> User:
    return User.objects.get(username=ADMIN)
