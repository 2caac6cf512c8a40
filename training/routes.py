"""Which of this host's addresses and interfaces leads to another host, as the kernel would choose. Standard library."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from typing import Any

DISCARD = 9  # any port will do: connecting a datagram socket sends nothing


def routes(peers: Iterable[str], interfaces: list[dict[str, str]]) -> list[dict[str, Any]]:
    """Return [{peer, address, interface, error}]: by which of our addresses, on which interface, `peer` is reached.

    `interfaces` as training.interfaces tells them. Where two hosts have the same address on a bridge of their own
    (docker0), the kernel still knows which one leads out.
    """
    names = {found["address"]: found["name"] for found in interfaces}
    return [_route(peer, names) for peer in peers]


def _route(peer: str, names: dict[str, str]) -> dict[str, Any]:
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(peer, DISCARD, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(where)
            own = str(probe.getsockname()[0])
    except OSError as error:
        return {"peer": peer, "address": "", "interface": "", "error": str(error)}
    return {"peer": peer, "address": own, "interface": names.get(own, ""), "error": ""}
