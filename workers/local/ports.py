"""Loopback ports: the one people visit, and private ones that stay the same from start to start."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable

from training.spec.ports import free_port

from .place import CannotStart, Place

HOST = "127.0.0.1"


def web_port() -> int:
    """Return SHARDBOARD_PORT, 8000 by default; raise CannotStart where it is no port or is taken."""
    text = os.environ.get("SHARDBOARD_PORT") or "8000"
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise CannotStart(f"SHARDBOARD_PORT is {text!r}, which is no port. Give a number from 1 to 65535.")
    if not is_free(int(text)):
        raise CannotStart(f"port {text} of {HOST} is taken. Set SHARDBOARD_PORT to a free one.")
    return int(text)


def private_ports(place: Place, names: Iterable[str]) -> dict[str, int]:
    """Return one port per name: the kept one where it is still free, else a new one."""
    kept = place.read_kept()
    ports: dict[str, int] = {}
    for name in names:
        port = kept.get(name)
        ports[name] = port if port and is_free(port) else free_port(HOST, but={*kept.values(), *ports.values()})
    place.write_kept(ports)
    return ports


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        # as servers bind: connections of an earlier start that still linger don't count
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except PermissionError:
            raise CannotStart(f"port {port} needs more rights. Set SHARDBOARD_PORT to one above 1023.") from None
        except OSError:
            return False
        return True
