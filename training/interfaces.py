"""This host's network addresses, with the standard library alone (Linux)."""

from __future__ import annotations

import array
import fcntl
import ipaddress
import socket
import struct
from pathlib import Path

SIOCGIFCONF = 0x8912
# struct ifreq: 16 bytes of name, then a sockaddr; 40 bytes in all on 64-bit hosts.
IFREQ_BYTES = 40
MOST = 256


def interfaces() -> list[dict[str, str]]:
    """Return [{name, address}]: IPv4 first, then global IPv6, the loopback's too."""
    return _ipv4() + _ipv6()


def _ipv4() -> list[dict[str, str]]:
    """Ask the kernel for every IPv4 address; several on one interface are all named."""
    names = array.array("B", bytes(IFREQ_BYTES * MOST))
    address, _ = names.buffer_info()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        answer = fcntl.ioctl(probe.fileno(), SIOCGIFCONF, struct.pack("iL", len(names), address))
    size = struct.unpack("iL", answer)[0]
    raw = names.tobytes()[:size]
    found = []
    for at in range(0, size, IFREQ_BYTES):
        name = raw[at : at + 16].partition(b"\0")[0].decode("ascii", "replace")
        found.append({"name": name, "address": socket.inet_ntoa(raw[at + 20 : at + 24])})
    return found


def _ipv6() -> list[dict[str, str]]:
    """Read the kernel's table; link-local addresses are left out, they don't work without a zone."""
    try:
        lines = Path("/proc/net/if_inet6").read_text("ascii").splitlines()
    except OSError:
        return []
    found = []
    for fields in map(str.split, lines):
        address = ipaddress.IPv6Address(bytes.fromhex(fields[0]))
        if not address.is_link_local:
            found.append({"name": fields[5], "address": str(address)})
    return found
