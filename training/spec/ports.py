"""Ports to listen on later. Standard library only."""

from __future__ import annotations

import random
import socket
from collections.abc import Collection
from pathlib import Path

RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
LOWEST, DEFAULT_END = 10_000, 32_768
TRIES = 500


def free_port(address: str, *, but: Collection[int] = ()) -> int:
    """Return a port nobody listens on, none of `but`, that no outgoing connection is given before it is listened on.

    A port that the system chooses (bind to 0) comes from those it gives to connections, and a busy host has given it
    away seconds later; it is taken only where no other is free. Raises OSError where `address` is not this host's.
    """
    family, kind, protocol, _, where = socket.getaddrinfo(address, 0, type=socket.SOCK_STREAM)[0]

    def bound(port: int) -> int:
        with socket.socket(family, kind, protocol) as probe:
            probe.bind((where[0], port, *where[2:]))
            return int(probe.getsockname()[1])

    systems = bound(0)
    chosen = random.SystemRandom()  # a seeded one would give two processes the same
    for port in (chosen.randrange(LOWEST, _end()) for _ in range(TRIES)):
        if port not in but:
            try:
                return bound(port)
            except OSError:
                continue
    return systems


def _end() -> int:
    """Return where the ports of outgoing connections begin, or Linux's default where that leaves too few below."""
    try:
        first = int(RANGE.read_text("ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return DEFAULT_END
    return first if first > LOWEST + TRIES else DEFAULT_END
