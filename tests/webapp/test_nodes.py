"""Nodes: added with a confirmed host key, checked, drained, pinned anew."""

from __future__ import annotations

import getpass
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client

from tests.openssh import openssh
from tests.sshd import Sshd
from webapp.fleet.models import Cluster, Identity, Node
from webapp.fleet.ssh import fingerprint
from webapp.runs.models import Run

from .rows import World, public_key


@pytest.fixture
def sshd(world: World) -> Iterator[Sshd]:
    server = Sshd(Identity.objects.get().public_key)
    yield server
    server.finish()


@pytest.fixture
def typed(sshd: Sshd) -> dict[str, Any]:
    return {
        "cluster": "new-cluster",
        "name": "gamma",
        "address": sshd.address,
        "port": sshd.port,
        "user": "ada",
        "identity": Identity.objects.get().pk,
        "python": "/usr/bin/python3",
        "scratch": "/scratch",
        "processes": 1,
        "internal_address": "",
        "interface": "",
    }


def seen(html: str) -> str:
    found = re.search(r'name="seen" value="([^"]+)"', html)
    assert found
    return found[1]


def test_the_page_works(page: Client, world: World) -> None:
    world.running("holder")
    run = Run.objects.get()
    run.attempt.claims.create(node=world.nodes[0])
    facts = {"python": "3.11.2", "versions": {"torch": "2.13.0"}, "ram_total": 24e9, "ram_available": 20e9, "gpus": []}
    Node.objects.filter(name="beta").update(facts=facts, problem="scratch: it can't be written. Free some space.")
    text = page.get("/fleet/nodes/").content.decode()
    assert "run #" in text
    assert "4 GB of 24 GB" in text
    assert "torch 2.13.0" in text
    assert "it can&#x27;t be written" in text
    assert fingerprint(world.nodes[0].host_key) in text


def test_adding_shows_the_fingerprint_and_pins_what_was_confirmed(
    page: Client, sshd: Sshd, typed: dict[str, Any]
) -> None:
    asked = page.post("/fleet/nodes/add", typed)
    assert fingerprint(sshd.host_key) in asked.content.decode()
    assert not Node.objects.filter(name="gamma").exists()
    page.post("/fleet/nodes/confirm", typed | {"seen": seen(asked.content.decode())})
    node = Node.objects.get(name="gamma")
    assert (fingerprint(node.host_key), node.cluster.name) == (fingerprint(sshd.host_key), "new-cluster")


def test_one_behind_a_jump_host_is_added_through_it(
    page: Client, world: World, sshd: Sshd, typed: dict[str, Any], tmp_path: Any
) -> None:
    gate = world.nodes[0]
    with openssh(tmp_path / "gate", Identity.objects.get().public_key, MaxSessions=0) as server:
        way = {"address": "127.0.0.1", "port": server.port, "user": getpass.getuser(), "host_key": server.host_key}
        Node.objects.filter(pk=gate.pk).update(**way)
        asked = page.post("/fleet/nodes/add", typed | {"jump": gate.pk})
        assert fingerprint(sshd.host_key) in asked.content.decode()
        assert server.logins == 1
        assert page.post("/fleet/nodes/confirm", typed | {"seen": seen(asked.content.decode())}).status_code == 422
        page.post("/fleet/nodes/confirm", typed | {"jump": gate.pk, "seen": seen(asked.content.decode())})
    node = Node.objects.get(name="gamma")
    assert (node.jump, node.host_key) == (gate, sshd.host_key)


def test_it_rejects_an_unreachable_host(page: Client, sshd: Sshd, typed: dict[str, Any]) -> None:
    sshd.stop()
    answer = page.post("/fleet/nodes/add", typed)
    assert answer.status_code == 422
    assert [problem.field for problem in answer.context["problems"]] == ["address"]


def test_it_rejects_a_key_that_nobody_saw(page: Client, typed: dict[str, Any]) -> None:
    asked = page.post("/fleet/nodes/add", typed).content.decode()
    for changes in ({"seen": "forged"}, {"seen": seen(asked), "port": 1}):
        assert page.post("/fleet/nodes/confirm", typed | changes).status_code == 422
    assert not Node.objects.filter(name="gamma").exists()
    assert not Cluster.objects.filter(name="new-cluster").exists()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "a;id"),
        ("address", "a b"),
        ("user", "-oProxyCommand=x"),
        ("python", "python3"),
        ("port", 0),
        ("name", "alpha"),
    ],
)
def test_it_rejects_bad_input_at_its_field(page: Client, typed: dict[str, Any], field: str, value: object) -> None:
    answer = page.post("/fleet/nodes/add", typed | {field: value})
    assert answer.status_code == 422
    assert list(answer.context["form"].errors) == [field]


def test_a_changed_key_shows_both_fingerprints_and_is_pinned_anew(page: Client, sshd: Sshd, world: World) -> None:
    node = world.nodes[0]
    Node.objects.filter(pk=node.pk).update(address=sshd.address, port=sshd.port, problem="host_key: changed")
    asked = page.get(f"/fleet/nodes/{node.pk}/repin").content.decode()
    assert fingerprint(node.host_key) in asked
    assert fingerprint(sshd.host_key) in asked
    page.post(f"/fleet/nodes/{node.pk}/repin", {"seen": "forged"})
    node.refresh_from_db()
    assert fingerprint(node.host_key) != fingerprint(sshd.host_key)
    page.post(f"/fleet/nodes/{node.pk}/repin", {"seen": seen(asked)})
    node.refresh_from_db()
    assert (fingerprint(node.host_key), node.problem) == (fingerprint(sshd.host_key), "")


def test_check_asks_the_workers(
    page: Client, world: World, monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    sent: list[tuple[str, int]] = []
    monkeypatch.setattr("webapp.dispatch.send", lambda name, key: sent.append((name, key)))
    with django_capture_on_commit_callbacks(execute=True):
        page.post(f"/fleet/nodes/{world.nodes[1].pk}/check")
    assert sent == [("workers.check_node", world.nodes[1].pk)]


def test_an_identity_is_made_and_its_private_half_shown_nowhere(page: Client, world: World) -> None:
    page.post("/fleet/identities/", {"name": "cluster key"})
    identity = Identity.objects.get(name="cluster key")
    for address in ("/fleet/identities/", f"/admin/fleet/identity/{identity.pk}/change/", "/admin/fleet/identity/"):
        text = page.get(address).content.decode()
        assert identity.sealed_private_key not in text
        assert "PRIVATE KEY" not in text
    assert identity.public_key in page.get("/fleet/identities/").content.decode()
    assert page.post("/fleet/identities/", {"name": "cluster key"}).context["form"].errors


def command(*changes: str, **options: Any) -> None:
    given = {"address": "10.0.0.1", "user": "ada", "identity": "loopback", "python": "/p", "scratch": "/s"} | options
    call_command("add_node", "lab", "delta", *changes, **given)


def test_add_node_pins_from_a_file_and_may_run_again(world: World, tmp_path: Any) -> None:
    file = tmp_path / "key.pub"
    file.write_text(f"{public_key()} root@delta\n")
    command("--cpu", host_key=file, port=2222)
    command(host_key=file, python=None, user="eve")
    node = Node.objects.get(name="delta")
    assert (node.cluster.name, node.user, node.port, node.accelerator) == ("lab", "eve", 2222, False)
    assert (node.python, node.in_service) == ("/p", True), "what is not given stays"
    assert node.host_key == " ".join(file.read_text().split()[:2])


def test_add_node_rejects_what_nobody_has_confirmed(world: World, sshd: Sshd, tmp_path: Any) -> None:
    there = {"address": sshd.address, "port": sshd.port}
    with pytest.raises(CommandError, match=re.escape(f"the fingerprint {fingerprint(sshd.host_key)}")):
        command(**there)
    with pytest.raises(CommandError, match="SHA256:wrong"):
        command(**there, fingerprint="SHA256:wrong")
    (tmp_path / "no.pub").write_text("no key")
    with pytest.raises(CommandError, match="no public key"):
        command(host_key=tmp_path / "no.pub")
    with pytest.raises(CommandError, match="make_identity nobody"):
        command(identity="nobody")
    assert not Node.objects.filter(name="delta").exists()
    assert not Cluster.objects.filter(name="lab").exists()
    command(**there, fingerprint=fingerprint(sshd.host_key))
    assert Node.objects.get(name="delta").port == sshd.port
    with pytest.raises(CommandError, match="no node is called 'nobody'"):
        command(**there, fingerprint=fingerprint(sshd.host_key), jump="nobody")


def test_add_node_takes_labels_and_a_jump_host_and_leaves_them(world: World, tmp_path: Any) -> None:
    file = tmp_path / "key.pub"
    file.write_text(public_key())
    command("--label", "A100", "--label", "nvlink", "--jump", "alpha", host_key=file, python="")
    command(host_key=file, port=2222, python="")
    node = Node.objects.get(name="delta")
    assert (node.labels, node.jump, node.in_service) == (["a100", "nvlink"], world.nodes[0], False)


def test_add_node_rejects_bad_fields_and_leaves_no_cluster(world: World, tmp_path: Any) -> None:
    (tmp_path / "key.pub").write_text(public_key())
    with pytest.raises(CommandError, match="python"):
        command(host_key=tmp_path / "key.pub", python="python3; id")
    for price in ("nan", "inf"):
        with pytest.raises(CommandError, match="gpu_hour_price"):
            command("--gpu-hour-price", price, host_key=tmp_path / "key.pub")
    assert not Cluster.objects.filter(name="lab").exists()


def test_make_identity_prints_the_same_key_twice(db: None, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("make_identity", "again")
    call_command("make_identity", "again")
    first, second = capsys.readouterr().out.splitlines()
    assert first == second
    assert first.startswith("ssh-ed25519 ")
