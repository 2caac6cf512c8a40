"""A node of one SSH server on loopback, and who is let in there."""

from __future__ import annotations

from dataclasses import replace

from tests.sshd import Sshd
from webapp.fleet.ssh import Endpoint, make_identity

IDENTITY = make_identity()


def endpoint(sshd: Sshd, **changes: object) -> Endpoint:
    made = Endpoint("n1", sshd.address, sshd.port, "me", sshd.host_key, IDENTITY.private)
    return replace(made, **changes)
