"""Ports to listen on later. Standard library only."""

from __future__ import annotations

import random
import socket
from pathlib import Path

RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
LOWEST, DEFAULT_END = 10_000, 32_768
TRIES = 500


def free_port(address: str) -> int:
    """Return a port nobody listens on, and that no outgoing connection is given before it is listened on.

    A port that the system chooses (bind to 0) comes from those it gives to connections, and a busy host has given it
    away seconds later. Raises OSError where `address` is not one of this host's.
    """
    family, kind, protocol, _, where = socket.getaddrinfo(address, 0, type=socket.SOCK_STREAM)[0]
    chosen = random.SystemRandom()  # a seeded one would give two processes the same
    for port in (chosen.randrange(LOWEST, _end()) for _ in range(TRIES)):
        if _is_free(family, kind, protocol, (where[0], port, *where[2:])):
            return port
    with socket.socket(family, kind, protocol) as probe:  # says what is wrong with the address, or takes any
        probe.bind(where)
        return int(probe.getsockname()[1])


def _end() -> int:
    """Return where the ports of outgoing connections begin, or Linux's default where that leaves too few."""
    try:
        first = int(RANGE.read_text("ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return DEFAULT_END
    return first if first > LOWEST + TRIES else DEFAULT_END


def _is_free(family: int, kind: int, protocol: int, where: tuple[object, ...]) -> bool:
    with socket.socket(family, kind, protocol) as probe:
        try:
            probe.bind(where)
        except OSError:
            return False
        return True
