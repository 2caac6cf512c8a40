"""Ports: refused when taken or senseless, the same from start to start otherwise."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from training.spec import ports
from workers.local.place import CannotStart, Place
from workers.local.ports import private_ports, web_port


def listen() -> tuple[socket.socket, int]:
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    taken.listen()
    return taken, taken.getsockname()[1]


def test_a_taken_port_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    taken, port = listen()
    monkeypatch.setenv("SHARDBOARD_PORT", str(port))
    with taken, pytest.raises(CannotStart, match=f"port {port} of 127.0.0.1 is taken. Set SHARDBOARD_PORT"):
        web_port()


@pytest.mark.parametrize("text", ["http", "-1", "0", "65536", "80 81"])
def test_it_refuses_what_is_no_port(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARDBOARD_PORT", text)
    with pytest.raises(CannotStart, match="no port"):
        web_port()


def test_private_ports_stay(tmp_path: Path) -> None:
    first = private_ports(Place(tmp_path), ("redis", "node-a"))
    assert first["redis"] != first["node-a"]
    assert private_ports(Place(tmp_path), ("redis", "node-a")) == first


def test_a_private_port_that_was_taken_meanwhile_moves(tmp_path: Path) -> None:
    taken, port = listen()
    place = Place(tmp_path)
    place.write_kept({"redis": port})
    with taken:
        assert private_ports(place, ("redis",))["redis"] != port


def test_a_private_port_is_none_that_connections_are_given(tmp_path: Path) -> None:
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    names = [str(n) for n in range(50)]
    ports = private_ports(Place(tmp_path), names)
    assert len(set(ports.values())) == 50
    assert all(1024 < port < first for port in ports.values())


def test_a_port_that_moves_is_not_another_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = ports.free_port("127.0.0.1")
    monkeypatch.setattr(ports, "LOWEST", kept)
    monkeypatch.setattr(ports, "_end", lambda: kept + 1)  # no other is left to choose
    taken, port = listen()
    place = Place(tmp_path)
    place.write_kept({"redis": port, "node-a": kept})
    with taken:
        assert private_ports(place, ("redis", "node-a"))["redis"] not in (port, kept)
