"""A node as its card and its page show it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from webapp.show import Bar

from . import holders
from .models import Claim, Node
from .ssh import fingerprint

CHOSEN_VERSIONS = ("torch", "transformers", "accelerate", "trl")
STATES = {
    "ready": "ready",
    "problem": "not ready",
    "unchecked": "not checked yet",
    "held": "held by a run",
    "free": "free",
    "drained": "out of service",
    "removed": "removed",
}


@dataclass(frozen=True)
class Card:
    """`bars` and `versions` are of the last check; `claims`: who holds the node."""

    node: Node
    fingerprint: str
    claims: list[Claim] = field(default_factory=list)
    bars: list[Bar] = field(default_factory=list)
    versions: list[tuple[str, str]] = field(default_factory=list)

    @property
    def state(self) -> tuple[str, str, str]:
        """Return (glyph, words, colour)."""
        if self.node.removed_at:
            return "■", "removed", "secondary"
        if not self.node.host_key:
            return "○", "host key not confirmed", "orange"
        if self.node.problem:
            return "✕", "not ready", "red"
        if self.node.checked_at is None:
            return "○", "not checked yet", "secondary"
        if not self.node.in_service:
            return "◌", STATES["drained"], "orange"
        return "✓", "ready", "green"

    @property
    def compare(self) -> Node | None:
        """Return the node whose host key is to be compared: itself, or the jump host whose key it is about."""
        problem = self.node.problem
        if not self.node.host_key or "host key" not in problem:
            return None
        if "jump host " not in problem:
            return self.node
        return next((hop for hop in _way(self.node) if f"jump host {hop.name}: its host key" in problem), None)

    def is_in(self, state: str) -> bool:
        """Tell whether it belongs to `state`, one of STATES; empty: all that are not removed."""
        node = self.node
        if node.removed_at or state == "removed":
            return bool(node.removed_at) and state == "removed"
        pinned = bool(node.host_key)
        return {
            "": True,
            "ready": node.ready,
            "problem": bool(node.problem) or not pinned,
            "unchecked": node.checked_at is None,
            "held": bool(self.claims),
            "free": not self.claims and node.in_service,
            "drained": not node.in_service,
        }[state]


def _way(node: Node) -> list[Node]:
    """Return its jump host, that one's jump host, and so on."""
    hops: list[Node] = []
    hop = node.jump
    while hop is not None and hop not in hops:
        hops.append(hop)
        hop = hop.jump
    return hops


def cards(nodes: Iterable[Node]) -> list[Card]:
    nodes = list(nodes)
    held = holders.claims(nodes)
    return [_card(node, held) for node in nodes]


def _card(node: Node, held: Mapping[int, list[Claim]]) -> Card:
    versions = node.facts.get("versions") or {}
    return Card(
        node=node,
        fingerprint=fingerprint(node.host_key),
        claims=held.get(node.pk, []),
        bars=_bars(node.facts),
        versions=[(name, versions[name]) for name in CHOSEN_VERSIONS if versions.get(name)],
    )


def _bars(facts: dict[str, Any]) -> list[Bar]:
    bars = [
        Bar(f"GPU {gpu['index']} {gpu.get('name', '')}", gpu.get("memory_used", 0), gpu.get("memory_total", 0))
        for gpu in facts.get("gpus") or []
    ]
    if (total := facts.get("ram_total")) and (free := facts.get("ram_available")) is not None:
        bars.append(Bar("host memory", total - free, total))
    if (total := facts.get("disk_total")) and (free := facts.get("disk_free")) is not None:
        bars.append(Bar("scratch disk", total - free, total))
    return bars
