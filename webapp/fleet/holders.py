"""What is on nodes now: runs that hold them, and jobs of one node."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from webapp.runs import jobkinds
from webapp.runs.models import NodeJob

from .models import Claim, Node


def claims(nodes: Iterable[Node]) -> dict[int, list[Claim]]:
    """Return by node id who holds its GPUs, one run after the other."""
    found: dict[int, list[Claim]] = defaultdict(list)
    for claim in Claim.objects.filter(node__in=list(nodes)).select_related("attempt__run").order_by("attempt", "gpu"):
        found[claim.node_id].append(claim)
    return found


def jobs(node: Node) -> list[NodeJob]:
    """Return the exports, deliveries and trials that have not ended, the oldest first."""
    found: list[NodeJob] = []
    for kind in jobkinds.every():
        rows = kind.model._default_manager.filter(node=node).exclude(state__in=kind.model.STATES.ended)
        found += rows.order_by("pk")
    return found
