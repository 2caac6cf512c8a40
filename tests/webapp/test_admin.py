"""The admin: every model is there to be found and read; what happened can't be edited."""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.test import Client
from django.urls import reverse

from webapp.accounts.models import Token
from webapp.runs.models import Event, Run

from .rows import World

OURS = [
    model for label in ("accounts", "fleet", "datasets", "runs") for model in apps.get_app_config(label).get_models()
]
EDITED = {"Cluster", "Node", "Dataset", "ModelSource"}


@pytest.fixture
def full(world: World) -> World:
    feed = world.running()
    feed.metrics(2.0)
    feed.checkpoint(1)
    feed.write("node@0", ("sample", None, {"ram_used": 1.0}))
    Token.issue(world.user, "ci")
    return world


@pytest.mark.parametrize("model", OURS, ids=lambda model: model.__name__)
def test_every_model_is_listed_filtered_and_searched(page: Client, full: World, model: Any) -> None:
    registered = admin.site._registry[model]
    assert registered.list_display != ("__str__",)
    assert registered.search_fields
    base = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
    assert page.get(base, {"q": "a"}).status_code == 200
    if row := model.objects.first():
        change = page.get(reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_change", args=[row.pk]))
        assert change.status_code == 200
        assert ('name="_save"' in change.content.decode()) is (model.__name__ in EDITED)


@pytest.mark.parametrize("model", [m for m in OURS if m.__name__ not in EDITED], ids=lambda model: model.__name__)
def test_facts_are_not_changed(page: Client, full: World, model: Any) -> None:
    name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
    assert page.get(reverse(f"{name}_add")).status_code == 403
    if row := model.objects.first():
        assert page.post(reverse(f"{name}_change", args=[row.pk]), {}).status_code == 403
        assert page.post(reverse(f"{name}_delete", args=[row.pk]), {"post": "yes"}).status_code == 403


def test_it_stops_a_run_through_the_action(page: Client, full: World) -> None:
    run = Run.objects.get()
    page.post("/admin/runs/run/", {"action": "stop", "_selected_action": [run.pk]})
    run.refresh_from_db()
    assert run.state == "stopping"
    assert Event.objects.filter(run=run, kind="state").last().data["actor"] == "ada"


def test_it_revokes_a_token_and_shows_no_digest(page: Client, full: World) -> None:
    token = Token.objects.get()
    for address in ("/admin/accounts/token/", f"/admin/accounts/token/{token.pk}/change/"):
        assert token.digest not in page.get(address).content.decode()
    page.post("/admin/accounts/token/", {"action": "revoke", "_selected_action": [token.pk]})
    token.refresh_from_db()
    assert not token.is_live()


def test_what_has_rules_of_its_own_is_not_edited(page: Client, full: World) -> None:
    node = full.nodes[0]
    same = {name: getattr(node, name) for name in ("name", "user", "scratch", "processes")}
    sent = same | {
        "address": "10.0.0.9",
        "port": 22,
        "python": "",
        "in_service": "",
        "drained_why": "x",
        "cluster": "9",
    }
    assert page.post(f"/admin/fleet/node/{node.pk}/change/", sent).status_code == 302
    node.refresh_from_db()
    assert (node.address, node.python, node.in_service, node.drained_why) == ("10.0.0.9", "/usr/bin/python3", True, "")


def test_a_pinned_key_is_not_edited(page: Client, full: World) -> None:
    text = page.get(f"/admin/fleet/node/{full.nodes[0].pk}/change/").content.decode()
    assert 'name="host_key"' not in text
    assert "SHA256:" in text
