"""Identities on the site: pasted in, shown, replaced, deleted; private halves are nowhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import asyncssh
import pytest
from django.db.models.signals import post_init
from django.test import Client

from tests.fleet import test_ways as ways
from webapp.fleet import enrol
from webapp.fleet.models import Identity, NextKey, Node
from webapp.fleet.ssh import fingerprint, make_identity

from .rows import World

KEY = asyncssh.generate_private_key("ssh-ed25519")
agent = ways.agent  # a real one, as a fixture
PEM = KEY.export_private_key().decode()


def test_a_pasted_key_is_sealed_and_shown_nowhere(page: Client, world: World) -> None:
    page.post("/fleet/identities/paste", {"name": "mine", "private_key": PEM})
    kept = Identity.objects.get(name="mine")
    assert (kept.kind, kept.public_key) == ("pasted", KEY.export_public_key().decode().strip())
    assert asyncssh.import_private_key(kept.private_key) == KEY
    body = "".join(PEM.splitlines()[1:-1])
    for address in ("/fleet/identities/", f"/admin/fleet/identity/{kept.pk}/change/"):
        text = page.get(address).content.decode()
        assert body not in text.replace("\n", "")
        assert kept.sealed_private_key not in text
    again = page.post("/fleet/identities/paste", {"name": "twice", "private_key": PEM})
    assert "mine has this very key" in again.content.decode()


def test_two_who_make_one_of_the_same_name_at_once_get_the_same(db: None) -> None:
    made: list[Identity] = []

    def other(**_: Any) -> None:
        """Somebody else is a moment earlier, once we have found that there is none."""
        post_init.disconnect(other, sender=Identity)
        made.append(enrol.make_identity("mine"))

    post_init.connect(other, sender=Identity)
    assert enrol.make_identity("mine") == made[0]
    assert Identity.objects.get().public_key == made[0].public_key


@pytest.mark.parametrize(
    ("pem", "reason"),
    [
        (KEY.export_private_key("pkcs8-pem", "secret").decode(), "protected by a passphrase"),
        (PEM[:80], "no private key"),
        (KEY.export_public_key().decode(), "no private key"),
    ],
    ids=["with a passphrase", "cut short", "the public half"],  # keys are new each time, names of tests are not
)
def test_a_key_that_can_not_be_used_is_refused_and_not_repeated(page: Client, pem: str, reason: str) -> None:
    answer = page.post("/fleet/identities/paste", {"name": "mine", "private_key": pem})
    assert answer.status_code == 422
    assert reason in str(answer.context["problems"])
    assert not Identity.objects.filter(name="mine").exists()


def test_one_that_is_used_is_not_deleted(page: Client, world: World) -> None:
    used = Identity.objects.get()
    answer = page.post(f"/fleet/identities/{used.pk}/delete", follow=True)
    assert "it is used by alpha, beta" in answer.content.decode()
    Node.objects.all().delete()
    page.post(f"/fleet/identities/{used.pk}/delete")
    assert not Identity.objects.exists()


def test_the_page_of_a_replacement_leads_through_it(page: Client, world: World) -> None:
    identity = Identity.objects.get()
    address = f"/fleet/identities/{identity.pk}/key"
    page.post(address, {"do": "begin"})
    following = NextKey.objects.get()
    shown = page.get(address).content.decode()
    assert following.public_key in shown
    assert "PRIVATE" not in shown
    assert following.sealed_private_key not in shown
    assert page.post(address, {"do": "finish"}).status_code == 422
    page.post(address, {"do": "try"})
    assert NextKey.objects.get().is_being_tried
    assert "every 2s" in page.get(f"/fleet/identities/{identity.pk}/next").content.decode()
    page.post(address, {"do": "drop"})
    assert not NextKey.objects.exists()
    assert Identity.objects.get().public_key == identity.public_key


def test_a_key_of_the_agent_is_chosen(page: Client, agent: Path, settings: Any) -> None:
    assert "holds no key" in page.get("/fleet/identities/agent").content.decode()
    pair = make_identity()
    ways.add(agent, pair)
    form = page.get("/fleet/identities/agent").context["form"]
    [(key, _)] = form.fields["public_key"].choices
    assert fingerprint(key) == fingerprint(pair.public)
    assert page.post("/fleet/identities/agent", {"name": "forged", "public_key": "ssh-ed25519 AAAA"}).status_code == 422
    answer = page.post("/fleet/identities/agent", {"name": "held", "public_key": key})
    assert answer.status_code == 302
    kept = Identity.objects.get(name="held")
    assert (kept.kind, kept.public_key, kept.private_key) == ("agent", key, "")
    refused = page.post(f"/fleet/identities/{kept.pk}/key", {"do": "begin"})
    assert "an SSH agent holds its key" in refused.content.decode()
    settings.SSH_AGENT = ""
    away = page.get("/fleet/identities/agent")
    assert (away.status_code, "SHARDBOARD_SSH_AGENT" in away.content.decode()) == (422, True)


def test_a_name_is_one_line(page: Client, world: World) -> None:
    for address, more in (("/fleet/identities/", {}), ("/fleet/identities/paste", {"private_key": PEM})):
        answer = page.post(address, {"name": "a\nb"} | more)
        assert "line break" in answer.content.decode()
    assert not Identity.objects.filter(name__startswith="a").exists()
