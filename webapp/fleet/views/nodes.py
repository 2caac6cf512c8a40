"""Nodes: are my machines ready?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from webapp.dispatch import check_node
from webapp.people import staff_only
from webapp.show import Bar

from ..models import Cluster, Identity, Node
from ..ssh import fingerprint

CHOSEN_VERSIONS = ("torch", "transformers", "accelerate", "trl")


@dataclass(frozen=True)
class Card:
    """A node as its card shows it. `facts` are those of the last check."""

    node: Node
    fingerprint: str
    bars: list[Bar] = field(default_factory=list)
    versions: list[tuple[str, str]] = field(default_factory=list)
    problems: list[dict[str, str]] = field(default_factory=list)

    @property
    def state(self) -> tuple[str, str, str]:
        """Return (glyph, words, colour)."""
        if not self.node.host_key:
            return "○", "host key not confirmed", "orange"
        if self.node.problem:
            return "✕", "not ready", "red"
        if self.node.checked_at is None:
            return "○", "not checked yet", "secondary"
        return "✓", "ready", "green"


@never_cache
@require_GET
def nodes(request: HttpRequest) -> HttpResponse:
    return render(request, "fleet/nodes.html", _context())


@never_cache
@require_GET
def cards(request: HttpRequest) -> HttpResponse:
    """Answer the cards alone: the page asks again every few seconds."""
    return render(request, "fleet/cards.html", _context())


def _context() -> dict[str, Any]:
    clusters = Cluster.objects.prefetch_related("nodes__claim__attempt__run", "nodes__identity")
    return {
        "clusters": [(cluster, [card(node) for node in cluster.nodes.all()]) for cluster in clusters],
        "identities": Identity.objects.order_by("name"),
    }


def card(node: Node) -> Card:
    facts = node.facts
    versions = facts.get("versions") or {}
    return Card(
        node=node,
        fingerprint=fingerprint(node.host_key),
        bars=_bars(facts),
        versions=[(name, versions[name]) for name in CHOSEN_VERSIONS if versions.get(name)],
        problems=[p for p in facts.get("problems") or [] if isinstance(p, dict)],
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


@require_POST
def check(request: HttpRequest, node_id: int) -> HttpResponse:
    node = get_object_or_404(Node, pk=node_id)
    check_node(node.pk)
    messages.info(request, f"{node} is being checked; its card changes by itself in a few seconds.")
    return redirect("fleet:nodes")


@require_POST
@staff_only("take nodes out of service or back", "fleet:nodes")
def service(request: HttpRequest, node_id: int) -> HttpResponse:
    """Take a node out of service or back. What runs on it goes on."""
    node = get_object_or_404(Node, pk=node_id)
    node.in_service = request.POST.get("in_service") == "1"
    node.save(update_fields=["in_service"])
    done = "is in service again" if node.in_service else "gets no new run; what runs on it goes on"
    messages.success(request, f"{node} {done}.")
    return redirect("fleet:nodes")
