"""What only staff may do: the fleet and the models are everybody's."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from webapp.fleet.models import Identity, Node
from webapp.runs.models import ModelSource

from .rows import World

WRITES = [
    ("get", "/fleet/nodes/add"),
    ("post", "/fleet/nodes/add"),
    ("post", "/fleet/nodes/confirm"),
    ("post", "/fleet/nodes/{node}/service"),
    ("get", "/fleet/nodes/{node}/edit"),
    ("post", "/fleet/nodes/{node}/edit"),
    ("get", "/fleet/nodes/{node}/remove"),
    ("post", "/fleet/nodes/{node}/remove"),
    ("post", "/fleet/nodes/{node}/back"),
    ("post", "/fleet/nodes/{node}/interpreter/make"),
    ("post", "/fleet/nodes/{node}/interpreter/stop"),
    ("post", "/fleet/nodes/{node}/pythons"),
    ("get", "/fleet/nodes/{node}/repin"),
    ("post", "/fleet/nodes/{node}/repin"),
    ("post", "/fleet/identities/"),
    ("get", "/fleet/identities/agent"),
    ("post", "/fleet/identities/agent"),
    ("post", "/fleet/identities/paste"),
    ("post", "/fleet/identities/1/delete"),
    ("get", "/fleet/identities/1/key"),
    ("post", "/fleet/identities/1/key"),
    ("get", "/fleet/identities/1/next"),
    ("get", "/fleet/leftovers/1/end"),
    ("post", "/fleet/leftovers/1/end"),
    ("post", "/queue/pause"),
    ("post", "/queue/go-on"),
    ("get", "/runs/models/new/"),
    ("post", "/runs/models/new/"),
]


@pytest.fixture
def guest(world: World, client: Client) -> Client:
    client.force_login(User.objects.create(username="eve"))
    return client


@pytest.mark.parametrize(("method", "address"), WRITES)
def test_others_are_told_why_and_where_to_turn(guest: Client, method: str, address: str) -> None:
    node = Node.objects.first()
    data = {"name": "mine", "location": "/m"} if method == "post" else {}
    answer = getattr(guest, method)(address.format(node=node.pk), data)
    assert answer.status_code == 403
    text = answer.content.decode()
    assert "Only staff accounts may" in text
    assert "Ask an administrator" in text
    node.refresh_from_db()
    assert node.in_service
    assert (Identity.objects.count(), ModelSource.objects.count()) == (1, 1)


@pytest.mark.parametrize("address", ["/fleet/nodes/", "/fleet/nodes/alpha/", "/fleet/identities/", "/runs/new/"])
def test_others_read_and_see_no_button_that_is_not_theirs(guest: Client, address: str) -> None:
    for name, shown in (("eve", False), ("ada", True)):
        guest.force_login(User.objects.get(username=name))
        answer = guest.get(address)
        assert answer.status_code == 200
        text = answer.content.decode()
        buttons = ("/fleet/nodes/add", "/service", "/repin", "Make a key pair", "/runs/models/new/")
        assert any(button in text for button in buttons) is shown


def test_others_may_check_a_node(guest: Client) -> None:
    assert guest.post(f"/fleet/nodes/{Node.objects.first().pk}/check").status_code == 302
