"""Addresses of services that exports are sent to: what is refused before anything is sent there."""

from __future__ import annotations

import ipaddress
from urllib.parse import SplitResult, urlsplit

from .lint import Problem

SCHEMES = ("https", "http")
ENVIRONMENT = "Leave them out: credentials come from the environment alone."


def problem_with(field: str, url: str, *, insecure: bool, path: bool = False) -> Problem | None:
    """Return what is wrong with the endpoint `url`, None where it can be used.

    Plain HTTP is for this machine and private networks, or where `insecure` says so. Only where `path` is true may
    something follow the host. A URL is never repeated in the answer: it may hold a password.
    """
    try:
        parts = urlsplit(url)
        port_is_odd = parts.port == 0
    except ValueError:
        return Problem(field, "it is no URL", "Write https://host or https://host:port.")
    if parts.username is not None or parts.password is not None:
        return Problem(field, "it holds a user name or a password", ENVIRONMENT)
    if parts.scheme not in SCHEMES or not parts.hostname or port_is_odd or _odd(url):
        return Problem(field, "it is no http or https URL of a host", "Write https://host or https://host:port.")
    if parts.query or parts.fragment:
        return Problem(field, "it holds a query or a fragment", "Write the address alone.")
    if parts.path.strip("/") and not path:
        return Problem(field, "a path follows the host", "Write the address alone, without a path.")
    return _network(field, parts, insecure)


def _odd(url: str) -> bool:
    return any(c.isspace() or not c.isprintable() or c == "\\" for c in url)


def _network(field: str, parts: SplitResult, insecure: bool) -> Problem | None:
    host = parts.hostname or ""
    address = _address(host)
    if address is not None and (address.is_link_local or address.is_multicast or address.is_unspecified):
        return Problem(field, f"{host} is no address of a server", "Name the server's own address.")
    if parts.scheme == "http" and not insecure and not _near(host, address):
        reason = "plain http to a host that is not known to be on a private network: anyone between could read it"
        return Problem(field, reason, "Use https, or set insecure to true.")
    return None


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return mapped or found


def _near(host: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address | None) -> bool:
    return address.is_private if address is not None else host == "localhost"
