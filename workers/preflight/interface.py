"""PURE: the network interface between nodes: the one a person has set, else the one that leads to the others.

Left to themselves gloo takes the address behind the host's name, and NCCL the first interface it likes, which may be a
bridge (docker0) that every host has with the same address. The kernel's route to the peers knows better.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from training.spec.lint import Problem

from ..group import Member
from .finding import Finding, bad, nothing, ok, warning

FIX = "Set the interface of the node by hand, or leave it empty to have it found."
ALONE = nothing("there is no other node")


@dataclass(frozen=True)
class Way:
    """The interface to the others, and our address on it."""

    interface: str
    address: str


def chosen(member: Member, facts: Mapping[str, Any]) -> tuple[Way | None, Finding]:
    """Return the way to the others and what is to be said of it; None where there is none."""
    routes = facts.get("routes") or []
    if not routes:
        return None, ALONE
    if member.slot.interface:
        return _set(member.slot.interface, facts, routes)
    lost = [route for route in routes if not route["interface"]]
    if lost:
        why = "; ".join(f"to {route['peer']} ({route['error'] or 'over an unknown interface'})" for route in lost)
        return None, bad(Problem("interface", f"no way {why}", "See the node's routes, and the other's address."))
    return _by_route(routes)


def _set(name: str, facts: Mapping[str, Any], routes: list[dict[str, Any]]) -> tuple[Way | None, Finding]:
    own = facts.get("interfaces") or []
    address = next((found["address"] for found in own if found["name"] == name), None)
    if address is None:
        there = ", ".join(dict.fromkeys(found["name"] for found in own))
        return None, bad(Problem("interface", f"there is no {name} with an address; there are {there}", FIX))
    text = f"{name} ({address}), set by hand"
    others = sorted({f"{route['interface']} to {route['peer']}" for route in routes if route["interface"] != name})
    way = Way(name, address)
    if not others:
        return way, ok(text)
    return way, warning(f"{text}; the node's routes lead over {', '.join(others)}", FIX, "interface")


def _by_route(routes: list[dict[str, Any]]) -> tuple[Way, Finding]:
    count = Counter(Way(route["interface"], route["address"]) for route in routes)
    way = count.most_common(1)[0][0]
    text = f"{way.interface} ({way.address}), by the route to {', '.join(route['peer'] for route in routes)}"
    if len(count) == 1:
        return way, ok(text)
    others = ", ".join(f"{other.interface} ({other.address})" for other in count if other != way)
    fix = "Give the nodes internal addresses in one network, or set the interface."
    return way, warning(f"{way.interface} ({way.address}); other nodes are reached over {others}", fix, "interface")
