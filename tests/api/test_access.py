"""Who may ask, for every route."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from webapp.accounts.models import Token
from webapp.api.site import api
from webapp.runs.models import Run

from .conftest import ROOT, Caller, World, refused

OPEN = {f"{ROOT}/healthz"}


def routes() -> list[tuple[str, str]]:
    paths = api.get_openapi_schema(path_prefix=f"{ROOT}/")["paths"]
    return [
        (method, re.sub("{[a-z_]+_id}", "1", path).replace("{name}", "loss"))
        for path, operations in paths.items() if path not in OPEN for method in operations
    ]  # fmt: skip


@pytest.mark.parametrize(("method", "path"), routes())
def test_every_route_wants_a_token(world: World, method: str, path: str) -> None:
    answer = getattr(Client(), method)(path)
    assert "no token" in refused(answer, 401, "Authorization")
    assert answer["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize(("method", "path"), [r for r in routes() if r[0] != "get"])
def test_a_reader_changes_nothing(world: World, user: User, method: str, path: str) -> None:
    _, secret = Token.issue(user, "reader", "read")
    answer = getattr(Client(headers={"Authorization": f"Bearer {secret}"}), method)(path)
    assert "only read" in refused(answer, 403, "Authorization")


def test_a_reader_reads(world: World, user: User) -> None:
    assert Caller(Token.issue(user, "reader", "read")[1]).get("/runs").status_code == 200


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Basic YTpi", "Bearer sb_wrong", "bearer  x y", "Bearer \x00"]
)
def test_a_wrong_header(world: World, header: str) -> None:
    refused(Client().get(f"{ROOT}/runs", headers={"Authorization": header}), 401, "Authorization")


def test_a_revoked_token(call: Caller, world: World) -> None:
    Token.objects.update(revoked_at=timezone.now())
    refused(call.get("/runs"), 401, "Authorization")


def test_an_expired_token(call: Caller, world: World) -> None:
    Token.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    refused(call.get("/runs"), 401, "Authorization")


def test_a_token_of_a_user_who_left(call: Caller, world: World) -> None:
    world.user.is_active = False
    world.user.save()
    refused(call.get("/runs"), 401, "Authorization")


def test_the_scheme_is_not_case_sensitive(world: World, secret: str) -> None:
    assert Client().get(f"{ROOT}/runs", headers={"Authorization": f"bearer {secret}"}).status_code == 200


def test_a_session_reads_and_does_not_write(world: World) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(world.user)
    assert client.get(f"{ROOT}/runs").status_code == 200
    answer = client.post(f"{ROOT}/runs", world.body(), content_type="application/json")
    refused(answer, 401, "Authorization")
    assert not Run.objects.exists()


def test_a_wrong_token_does_not_fall_back_to_the_session(world: World) -> None:
    client = Client()
    client.force_login(world.user)
    refused(client.get(f"{ROOT}/runs", headers={"Authorization": "Bearer sb_wrong"}), 401, "Authorization")


def test_last_use_is_written_at_most_once_a_minute(call: Caller, world: World) -> None:
    call.get("/runs")
    first = Token.objects.get().last_used_at
    assert first is not None
    call.get("/runs")
    assert Token.objects.get().last_used_at == first
    Token.objects.update(last_used_at=first - timedelta(minutes=2))
    call.get("/runs")
    assert Token.objects.get().last_used_at > first


def test_addresses_that_are_none(call: Caller, world: World) -> None:
    refused(call.get("/nothing"), 404, "path")
    refused(call.post("/nothing", {}), 404, "path")
    refused(call.get("/runs/abc"), 404, "path")


def test_a_method_that_is_none(call: Caller, world: World) -> None:
    answer = call.client.delete(f"{ROOT}/runs", headers=call.headers)
    assert "DELETE" in refused(answer, 405, "method")
    assert answer["Allow"] == "GET, POST"


def test_an_error_of_our_own_says_nothing_of_itself(
    call: Caller, world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("webapp.api.runs.newest_first", lambda *a: 1 / 0)
    answer = call.get("/runs")
    refused(answer, 500, "service")
    assert b"division" not in answer.content
    assert "ZeroDivisionError" in caplog.text
