"""manage.py create_token."""

from __future__ import annotations

from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from webapp.accounts.models import Token

pytestmark = pytest.mark.django_db


def run(*words: str) -> str:
    out = StringIO()
    call_command("create_token", *words, stdout=out)
    return out.getvalue()


@pytest.fixture
def ada() -> User:
    return User.objects.create(username="ada")


def test_it_prints_the_token_and_nothing_else(ada: User) -> None:
    printed = run("ada")
    found = Token.find(printed.strip())
    assert printed.count("\n") == 1
    assert found is not None
    assert (found.user, found.scope, found.expires_at) == (ada, "write", None)


def test_the_secret_is_not_kept(ada: User) -> None:
    secret = run("ada").strip()
    assert not any(secret in str(value) for value in Token.objects.values().get().values())


def test_scope_name_and_end(ada: User) -> None:
    found = Token.find(run("ada", "--scope", "read", "--name", "ci", "--days", "3").strip())
    assert found is not None
    assert (found.scope, found.name) == ("read", "ci")
    assert found.expires_at is not None
    assert (found.expires_at - found.created_at).days in (2, 3)


def test_it_refuses(ada: User) -> None:
    with pytest.raises(CommandError, match="no user"):
        run("nobody")
    with pytest.raises(CommandError, match="days"):
        run("ada", "--days", "0")
    ada.is_active = False
    ada.save()
    with pytest.raises(CommandError, match="may not log in"):
        run("ada")
    assert not Token.objects.exists()
