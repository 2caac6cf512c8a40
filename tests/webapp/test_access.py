"""Who sees what: every page of the site asks for a log-in, and every answer carries the policy."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.urls import URLPattern, get_resolver

from webapp.security import POLICY

from .rows import World

OPEN = {"login"}
SITE = ("queue", "runs", "deliveries", "trials", "fleet", "leftovers", "datasets", "accounts", "notices")


def addresses() -> list[str]:
    """Return an address of every page of the site, with 1 for every number and `header` for every word."""
    found = []
    for part in get_resolver().url_patterns:
        namespace = getattr(part, "namespace", None)
        if namespace in SITE:
            patterns: list[URLPattern] = part.url_patterns
            found += [f"/{part.pattern}{pattern.pattern}" for pattern in patterns]
    plain = [address.replace("<slug:name>", "header").replace("<slug:kind>", "s3") for address in found]
    return [re.sub("<[^>]*>", "1", address) for address in plain]


@pytest.mark.parametrize("address", addresses())
@pytest.mark.parametrize("method", ["get", "post"])
def test_it_requires_a_login(client: Client, db: None, address: str, method: str) -> None:
    answer = getattr(client, method)(address)
    assert answer.status_code == 302
    assert answer.headers["Location"].startswith("/login/?next=")


def test_the_list_of_addresses_is_whole() -> None:
    some = {"/runs/", "/runs/1/stop", "/runs/1/part/header", "/runs/1/try/1/cancel", "/fleet/nodes/1/repin"}
    assert some | {"/datasets/upload"} <= set(addresses())


def test_it_logs_in(client: Client, world: World) -> None:
    world.user.set_password("a long password")
    world.user.save()
    refused = client.post("/login/", {"username": "ada", "password": "no"})
    assert (refused.status_code, "login-error" in refused.content.decode()) == (200, True)
    answer = client.post("/login/", {"username": "ada", "password": "a long password"})
    assert (answer.status_code, answer.headers["Location"]) == (302, "/runs/")


@pytest.mark.parametrize("address", ["/runs/", "/runs/new/", "/fleet/nodes/", "/datasets/", "/admin/", "/login/"])
def test_every_page_has_the_policy_and_no_inline_script(page: Client, address: str) -> None:
    answer = page.get(address, follow=True)
    assert answer.headers["Content-Security-Policy"] == POLICY
    tags = [after.partition(">")[0] for after in answer.content.decode().split("<script")[1:]]
    assert tags
    assert all(" src=" in tag or 'type="application/json"' in tag for tag in tags)


def test_an_unknown_run_is_not_found(page: Client) -> None:
    for address in ("/runs/99/", "/runs/99/live", "/runs/99/series.json", "/runs/99/part/header"):
        assert page.get(address).status_code == 404
