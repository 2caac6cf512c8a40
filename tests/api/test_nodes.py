"""Nodes and identities: read by all, changed by staff alone, as on the site."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection

from tests.sshd import Sshd
from webapp.fleet.models import Identity, Node, NodeChange, Provision
from webapp.fleet.ssh import fingerprint

from .conftest import Caller, World, refused

NEGATIVE = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAACP////////8B"  # its modulus is


@pytest.fixture
def staff(user: User, call: Caller) -> Caller:
    User.objects.filter(pk=user.pk).update(is_staff=True)
    return call


@pytest.fixture
def sshd() -> Iterator[Sshd]:
    server = Sshd("ssh-ed25519 x")
    yield server
    server.finish()


def test_others_read_and_change_nothing(world: World, call: Caller) -> None:
    one = f"/nodes/{world.nodes[0].pk}"
    assert [row["name"] for row in call.get("/nodes?cluster=pair").json()["items"]] == ["n0", "n1"]
    assert call.get("/nodes?label=a100").json()["items"] == []
    assert "SEALED" not in call.get("/identities").content.decode()
    assert call.post(f"{one}/check").status_code == 202, "everybody may check"
    for path, body in (
        ("/nodes", {"name": "x"}),
        (f"{one}/drain", None),
        (f"{one}/return", None),
        (f"{one}/provision", None),
        ("/identities", {"name": "mine"}),
    ):
        assert "only staff" in refused(call.post(path, body), 403, "user")
    assert "only staff" in refused(call.patch(one, {"notes": "x"}), 403, "user")
    assert "only staff" in refused(call.delete(one), 403, "user")
    assert not NodeChange.objects.exists()


def test_a_node_is_added_with_the_key_that_it_must_show(world: World, staff: Caller, sshd: Sshd) -> None:
    body: dict[str, Any] = {"name": "n2", "cluster": "new", "address": sshd.address, "port": sshd.port, "user": "me"}
    body |= {"identity": "key", "scratch": "/scratch", "labels": ["A100"]}
    shown = refused(staff.post("/nodes", body), 422, "fingerprint")
    assert fingerprint(sshd.host_key) in shown
    assert "SHA256:no" in refused(staff.post("/nodes", body | {"fingerprint": "SHA256:no"}), 422, "fingerprint")
    refused(staff.post("/nodes", body | {"host_key": "rubbish"}), 422, "host_key")
    refused(staff.post("/nodes", body | {"host_key": NEGATIVE}), 422, "host_key")
    refused(staff.post("/nodes", body | {"jump": "nobody"}), 422, "jump")
    refused(staff.post("/nodes", {"name": "n2"}), 422, "cluster")
    refused(staff.post("/nodes", body | {"scratch": "../x", "host_key": sshd.host_key}), 422, "scratch")
    assert not Node.objects.filter(name="n2").exists()
    made = staff.post("/nodes", body | {"fingerprint": fingerprint(sshd.host_key)}).json()
    assert (made["cluster"], made["labels"], made["python"]) == ("new", ["a100"], "")
    assert made["drained"]["why"] == "it has no interpreter yet"
    assert Node.objects.get(name="n2").host_key == sshd.host_key


def test_a_node_is_changed_drained_returned_and_removed(world: World, staff: Caller) -> None:
    one = f"/nodes/{world.nodes[0].pk}"
    changed = staff.patch(one, {"labels": ["nvlink"], "jump": "n1", "port": 2222}).json()
    assert (changed["labels"], changed["jump"], changed["port"], changed["user"]) == (["nvlink"], "n1", 2222, "ml")
    refused(staff.patch(f"/nodes/{world.nodes[1].pk}", {"jump": "n0"}), 422, "jump")
    refused(staff.patch(one, {"labels": ["a;id"]}), 422, "labels")
    assert staff.patch(one, {"jump": None, "gpu_hour_price": 2.5}).json()["jump"] is None
    assert staff.patch(one, {"gpu_hour_price": -1}).status_code == 422
    assert staff.get(one).json()["gpu_hour_price"] == 2.5
    assert staff.patch(one, {"gpu_hour_price": None}).json()["gpu_hour_price"] is None
    assert staff.post(f"{one}/drain", {"why": "fan"}).json()["drained"]["why"] == "fan"
    assert staff.post(f"{one}/return").json()["in_service"] is True
    assert [row.actor for row in NodeChange.objects.all()] == ["ada"] * 5
    refused(staff.post(f"{one}/provision", {"base": "/usr/bin/python3\n"}), 422, "base")
    made = staff.post(f"{one}/provision", {"base": "/usr/bin/python3", "gpu": False})
    assert (made.status_code, made.json()["state"]) == (202, "queued")
    assert "already" in refused(staff.post(f"{one}/provision"), 422, "node")
    staff.post(f"{one}/provision/cancel")
    assert Provision.objects.get().cancelled_by == "ada"
    assert staff.get(f"{one}/provision").json()["base"] == "/usr/bin/python3"
    assert "being made there" in refused(staff.delete(one), 422, "node")
    Provision.objects.update(state="cancelled")
    assert staff.delete(one).status_code == 204
    refused(staff.get(one), 404, "id")


def test_an_identity_is_made_once(world: World, staff: Caller) -> None:
    made = staff.post("/identities", {"name": "mine"}).json()
    assert made["public_key"].startswith("ssh-ed25519 ")
    assert staff.post("/identities", {"name": "mine"}).json() == made
    assert Identity.objects.filter(name="mine").count() == 1


@pytest.mark.parametrize(
    ("field", "value"),
    [("address", "gpu1\n"), ("user", "ml\n"), ("interface", "eth0\n"), ("scratch", "/a\rb"), ("python", "/p\x1b[2J")],
)
def test_a_field_is_one_line(world: World, staff: Caller, field: str, value: str) -> None:
    one = f"/nodes/{world.nodes[0].pk}"
    assert "line break" in refused(staff.patch(one, {field: value}), 422, field)
    assert not NodeChange.objects.exists()


@pytest.mark.parametrize("name", ["a\nssh-ed25519 AAAA another", "a\r", "\x1b[31m", "a\u2028b"])
def test_the_line_for_authorized_keys_stays_one(world: World, staff: Caller, name: str) -> None:
    assert "line break" in refused(staff.post("/identities", {"name": name}), 422, "name")
    assert Identity.objects.count() == 1


def test_a_change_undoes_nothing_that_others_do_meanwhile(world: World, staff: Caller) -> None:
    others = [lambda: Node.objects.update(in_service=False, drained_why="fan")]
    lock = "FOR NO KEY UPDATE" if connection.vendor == "postgresql" else "SAVEPOINT"  # SQLite's is the transaction

    def meanwhile(execute: Callable[..., Any], sql: str, *more: Any) -> Any:
        """They are a moment earlier than our lock."""
        if others and lock in sql:
            others.pop()()
        return execute(sql, *more)

    with connection.execute_wrapper(meanwhile):
        changed = staff.patch(f"/nodes/{world.nodes[0].pk}", {"notes": "x"}).json()
    assert (changed["notes"], changed["in_service"], changed["drained"]["why"]) == ("x", False, "fan")
