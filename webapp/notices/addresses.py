"""Where webhooks may go: http and https to public addresses, to private ones where the operator allows it.

A name says nothing, its addresses do, and they can change: they are looked up at each send, each one is judged, and
it is the judged address that is connected to, not the name once more. Redirects are not followed, so nothing leads on.
"""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

from training.spec.lint import Problem, Refused

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
PORTS = {"http": 80, "https": 443}
MOST = 2000
NAT64 = ipaddress.ip_network("64:ff9b::/96")  # RFC 6052: the last four bytes are an IPv4 address
# All of IPv6 that is given to anybody (RFC 4291, 2.4). Python takes for global what lies outside and is reserved: NAT64
# of one network's own (64:ff9b:1::/48, RFC 8215), site-local addresses (fec0::/10), IPv4 in the last bytes (::/96).
GIVEN = ipaddress.ip_network("2000::/3")
ALLOW = "The operator can allow private addresses with SHARDBOARD_WEBHOOK_PRIVATE=1."


@dataclass(frozen=True)
class Target:
    """A webhook's address, taken apart. `path` has the query with it."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """The host as a header names it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def shown(self) -> str:
        """The address without what may be a token."""
        return f"{self.scheme}://{self.authority}{'/…' if self.path != '/' else ''}"[:300]


def parse(url: str) -> Target:
    """Take `url` apart; raise Refused, which never repeats it: it may hold a token."""
    if len(url) > MOST or not url.isascii() or not url.isprintable() or any(c in url for c in " \\#"):
        raise _refused("it is no plain address", "Write https://host/path, in ASCII, without spaces.")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise _refused("it is no URL", "Write https://host/path.") from None
    if parts.scheme not in PORTS or not parts.hostname or port == 0:
        raise _refused("it is no http or https URL of a host", "Write https://host/path.")
    if parts.username is not None or parts.password is not None:
        raise _refused("it holds a user name or a password", "Leave them out: the signature says who sends.")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(parts.scheme, parts.hostname, port or PORTS[parts.scheme], path)


def resolve(target: Target, *, private: bool) -> list[str]:
    """Return the addresses to connect to; raise Refused where there is none, or where any may not be asked."""
    try:
        found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise _refused("its host's name has no address", "Look for a typing error.") from None
    addresses = list(dict.fromkeys(str(entry[4][0]).partition("%")[0] for entry in found))
    for text in addresses:
        if why := refusal(ipaddress.ip_address(text), private=private):
            raise _refused(f"its host has the address {text}, which is {why}", ALLOW)
    return addresses


def refusal(address: Address, *, private: bool) -> str:
    """Return why nothing is sent to this address; empty where it may be."""
    inner = _inner(address)
    if inner.is_link_local or inner.is_multicast or inner.is_unspecified:
        return "no server's"  # 169.254.169.254, where clouds keep their machines' keys, is one of these
    if not private and not _is_public(inner):
        return "not public"
    return ""


def _is_public(address: Address) -> bool:
    return address.is_global and (isinstance(address, ipaddress.IPv4Address) or address in GIVEN)


def _inner(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 address stands for, if it does."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in NAT64:
        return ipaddress.IPv4Address(address.packed[-4:])
    return address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None) or address


def _refused(reason: str, fix: str) -> Refused:
    return Refused([Problem("url", reason, fix)])
