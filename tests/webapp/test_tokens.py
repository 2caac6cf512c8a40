"""The tokens page."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.test import Client

from webapp.accounts.models import Token

from .rows import World


def test_the_secret_is_shown_once(page: Client, world: World) -> None:
    made = page.post("/accounts/tokens/", {"name": "ci", "scope": "read", "days": "30"})
    secret = made.context["secret"]
    assert secret in made.content.decode()
    assert Token.find(secret).scope == "read"
    assert secret not in page.get("/accounts/tokens/").content.decode()
    assert "no-store" in made.headers["Cache-Control"]


def test_it_revokes_ones_own_alone(page: Client, world: World) -> None:
    own, _ = Token.issue(world.user, "mine")
    other, _ = Token.issue(User.objects.create(username="bob"), "his")
    assert "his" not in [token.name for token in page.get("/accounts/tokens/").context["tokens"]]
    assert page.post(f"/accounts/tokens/{other.pk}/revoke").status_code == 404
    page.post(f"/accounts/tokens/{own.pk}/revoke")
    own.refresh_from_db()
    other.refresh_from_db()
    assert (own.is_live(), other.is_live()) == (False, True)


def test_it_rejects_a_token_without_a_name(page: Client) -> None:
    assert page.post("/accounts/tokens/", {"name": "", "scope": "read"}).context["form"].errors["name"]
    assert not Token.objects.exists()
