"""A long silence: what stands between us and a node drops connections on which nothing is said, and ours isn't one."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest
from asgiref.sync import async_to_sync

from tests.sshd import Sshd
from webapp.fleet.ssh import Endpoint, connect, make_identity

IDENTITY = make_identity()
PATIENCE, SILENCE = 8.0, 10  # seconds after which the relay drops an idle connection, and of our saying nothing


class Firewall:
    """Forwards connections, and drops each on which nothing went either way for PATIENCE seconds."""

    def __init__(self, target: int):
        self.accepted = self.dropped = 0
        self._target = target
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._door.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._door.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._door.accept()
                self.accepted += 1
                far = socket.create_connection(("127.0.0.1", self._target))
                threading.Thread(target=self._forward, args=(near, far), daemon=True).start()

    def _forward(self, near: socket.socket, far: socket.socket) -> None:
        with near, far, suppress(OSError):
            while ready := select.select([near, far], [], [], PATIENCE)[0]:
                for source in ready:
                    if not (data := source.recv(65536)):
                        return
                    (far if source is near else near).sendall(data)
            self.dropped += 1


@pytest.fixture
def firewall() -> Iterator[tuple[Firewall, Endpoint]]:
    server = Sshd(IDENTITY.public)
    firewall = Firewall(server.port)
    yield firewall, Endpoint("n1", "127.0.0.1", firewall.port, "me", server.host_key, IDENTITY.private)
    firewall.close()
    server.finish()


def test_a_silent_command_outlives_a_firewall_that_drops_idle_connections(
    firewall: tuple[Firewall, Endpoint],
) -> None:
    """Case N3. asyncssh sends keepalives through our own client; the server of the tests sends none."""
    wall, there = firewall

    @async_to_sync
    async def silent() -> str:
        async with connect(there) as host:
            return await host.check(["sh", "-c", f"sleep {SILENCE}; echo still here"])

    assert silent() == "still here\n"
    assert (wall.accepted, wall.dropped) == (1, 0)
