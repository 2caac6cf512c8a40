"""How clusters and nodes look outside: never a secret, never an SSH key but its fingerprint."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ninja import Schema

from webapp.fleet.models import Cluster, Node


class HeldOut(Schema):
    """A GPU that a run has; on a node without GPUs a rank."""

    gpu: int
    run: int
    since: datetime


class NodeOut(Schema):
    """`ready`: in service, host key pinned, and the last check found no `problem`.

    `held`: its GPUs that runs have; `held_by_run`: the first of these runs.
    """

    id: int
    name: str
    cluster: str
    address: str
    port: int
    user: str
    processes: int
    accelerator: bool
    in_service: bool
    pinned: bool
    ready: bool
    problem: str
    facts: dict[str, Any]
    checked_at: datetime | None
    held_by_run: int | None
    held: list[HeldOut]

    @classmethod
    def of(cls, node: Node) -> NodeOut:
        same = ("id", "name", "address", "port", "user", "processes", "accelerator", "in_service", "problem", "facts")
        claims = list(node.claims.all())
        return cls(
            cluster=node.cluster.name,
            pinned=bool(node.host_key),
            ready=node.in_service and bool(node.host_key) and not node.problem and node.checked_at is not None,
            checked_at=node.checked_at,
            held_by_run=claims[0].attempt.run_id if claims else None,
            held=[HeldOut(gpu=claim.gpu, run=claim.attempt.run_id, since=claim.since) for claim in claims],
            **{name: getattr(node, name) for name in same},
        )


class ClusterOut(Schema):
    """Nodes that can train together."""

    id: int
    name: str
    nodes: list[NodeOut]

    @classmethod
    def of(cls, cluster: Cluster) -> ClusterOut:
        nodes = cluster.nodes.filter(removed_at=None).select_related("cluster").prefetch_related("claims__attempt")
        return cls(
            id=cluster.pk,
            name=cluster.name,
            nodes=[NodeOut.of(node) for node in nodes],
        )
