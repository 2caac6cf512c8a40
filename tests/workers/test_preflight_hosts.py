"""The grid on three OpenSSH hosts with links, disks and firewalls of their own, once whole and once with everything
that is wrong between nodes in practice."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.ssh_hosts import SshHost, ssh_hosts
from webapp.fleet.models import Cluster, Identity, Node
from webapp.fleet.ssh import make_identity
from webapp.preflights import actions
from webapp.preflights.models import Cell, Preflight, State
from workers.preflight import demand

pytestmark = [pytest.mark.root, pytest.mark.ranks]
PAIR = make_identity()


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[SshHost]]:
    """Three hosts, each with a bridge docker0 at the same address."""
    with ssh_hosts(tmp_path_factory.mktemp("three"), PAIR.public, 3) as hosts:
        for host in hosts:
            host.inside("ip", "link", "add", "docker0", "type", "bridge")
            host.inside("ip", "addr", "add", "172.17.0.1/16", "dev", "docker0")
            host.inside("ip", "link", "set", "docker0", "up")
        yield hosts


@pytest.fixture
def cluster(transactional_db: None, no_broker: None, hosts: list[SshHost]) -> Cluster:
    identity = Identity(name="three", public_key=PAIR.public)
    identity.private_key = PAIR.private
    identity.save()
    cluster = Cluster.objects.create(name="three")
    for host in hosts:
        Node.objects.create(
            cluster=cluster, name=host.name, address=host.address, port=22, user="root", identity=identity,
            host_key=host.host_key, python=sys.executable, scratch="/scratch", accelerator=False,
        )  # fmt: skip
    return cluster


def made(cluster: Cluster) -> Preflight:
    row = actions.ask(cluster, "ada")
    demand.advance(row.pk)
    row.refresh_from_db()
    assert not row.cells.filter(state=State.WAITING).exists()
    return row


def cells(row: Preflight, check: str) -> dict[str, Cell]:
    return {cell.node.name: cell for cell in row.cells.filter(check_name=check).select_related("node")}


def test_whole_with_docker_on_every_host(cluster: Cluster, hosts: list[SshHost]) -> None:
    row = made(cluster)
    assert not row.cells.filter(state=State.PROBLEM).exists(), list(row.cells.values_list("check_name", "text"))
    assert row.signature
    for host in hosts:
        assert cells(row, "interface")[host.name].text.startswith(f"eth0 ({host.address}), by the route to ")
        assert cells(row, "storage")[host.name].text.startswith("private")
        assert cells(row, "allreduce")[host.name].text.startswith("3 nodes over gloo in ")
    assert all(f"{hosts[2].name} " in cells(row, "ports")[host.name].text for host in hosts[:2])


def test_what_is_wrong_is_named_where_it_is(cluster: Cluster, hosts: list[SshHost], tmp_path: Path) -> None:
    first, second, third = hosts
    Node.objects.filter(name=first.name).update(interface="docker0")
    Node.objects.filter(name=second.name).update(python=str(another_trl(tmp_path)))
    with ruled(second, "-p", "tcp", "--syn", "-d", third.address):
        row = made(cluster)
    assert "trl differs (host-1 has " in cells(row, "versions")["host-2"].text
    assert cells(row, "versions")["host-1"].state == cells(row, "versions")["host-3"].state == "ok"
    assert "set by hand; the node's routes lead over eth0" in cells(row, "interface")["host-1"].text
    told = cells(row, "ports")
    assert "no connection from host-3 to host-1" in told["host-1"].text
    assert "no connection from host-2 to host-3 (timed out)" in told["host-3"].text
    assert "from host-3 to host-2" not in told["host-2"].text
    assert "see the ports" in cells(row, "allreduce")["host-3"].text
    assert row.signature == ""


def test_the_pair_between_which_only_small_packets_pass_has_a_name(cluster: Cluster, hosts: list[SshHost]) -> None:
    _, second, third = hosts
    large = ("-m", "length", "--length", "1000:65535", "-d")
    with ruled(second, *large, third.address), ruled(third, *large, second.address):
        row = made(cluster)
    assert {cell.state for cell in cells(row, "ports").values()} == {"ok"}
    added = cells(row, "allreduce")
    assert "none between host-2 and host-3" in added["host-2"].text
    assert added["host-2"].text == added["host-3"].text
    assert added["host-1"].state == "warning"


@contextmanager
def ruled(host: SshHost, *what: str) -> Iterator[None]:
    """Drop what goes out of a host and is so."""
    rule = ("OUTPUT", *what, "-j", "DROP")
    host.inside("iptables", "-A", *rule)
    try:
        yield
    finally:
        host.inside("iptables", "-D", *rule)


def another_trl(folder: Path) -> Path:
    """Return an interpreter that has another version of one library."""
    (folder / "trl-0.0.1.dist-info").mkdir()
    (folder / "trl-0.0.1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: trl\nVersion: 0.0.1\n")
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{folder}:$PYTHONPATH" exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    return python
