"""How clusters and nodes look outside: never a secret, never an SSH key but its fingerprint."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ninja import Schema

from webapp.fleet.models import DESCRIBED, Cluster, Identity, Node, Provision
from webapp.fleet.ssh import fingerprint


class DrainOut(Schema):
    """Why a node takes nothing new, since when, and who said so."""

    at: datetime | None
    by: str
    why: str


class ProvisionOut(Schema):
    """An interpreter that is made on a node. Seconds are the node's own; `tail`: the last lines of a failed step."""

    id: int
    state: str
    base: str
    python: str
    gpu: bool
    step: str
    number: int
    steps: int
    seconds: float
    step_seconds: float
    line: str
    tail: list[str]
    reason: str
    fix: str
    requested_by: str
    created_at: datetime
    ended_at: datetime | None

    @classmethod
    def of(cls, row: Provision) -> ProvisionOut:
        return cls(**{name: getattr(row, name) for name in cls.model_fields})


class HeldOut(Schema):
    """A GPU that a run has; on a node without GPUs a rank."""

    gpu: int
    run: int
    since: datetime


class NodeOut(Schema):
    """`ready`: in service, host key pinned, and the last check found no `problem`. `fingerprint`: of the pinned key.

    `held`: its GPUs that runs have; `held_by_run`: the first of these runs.
    """

    id: int
    name: str
    cluster: str
    address: str
    port: int
    user: str
    identity: str
    jump: str | None
    python: str
    scratch: str
    processes: int
    accelerator: bool
    internal_address: str
    interface: str
    gpu_hour_price: float | None
    labels: list[str]
    notes: str
    in_service: bool
    drained: DrainOut | None
    removed_at: datetime | None
    pinned: bool
    fingerprint: str
    ready: bool
    problem: str
    facts: dict[str, Any]
    checked_at: datetime | None
    held_by_run: int | None
    held: list[HeldOut]

    @classmethod
    def of(cls, node: Node) -> NodeOut:
        claims = list(node.claims.all())
        return cls(
            cluster=node.cluster.name,
            identity=node.identity.name,
            jump=node.jump.name if node.jump else None,
            drained=None if node.in_service else DrainOut(at=node.drained_at, by=node.drained_by, why=node.drained_why),
            pinned=bool(node.host_key),
            fingerprint=_fingerprint(node.host_key),
            ready=node.ready,
            held_by_run=claims[0].attempt.run_id if claims else None,
            held=[HeldOut(gpu=claim.gpu, run=claim.attempt.run_id, since=claim.since) for claim in claims],
            **{name: getattr(node, name) for name in SAME},
        )


SAME = ("id", "name", *DESCRIBED, "labels", "notes", "in_service", "removed_at", "problem", "facts", "checked_at")


def _fingerprint(key: str) -> str:
    try:
        return fingerprint(key)
    except ValueError:  # rows are also made by hand, in the admin's shell
        return ""


class IdentityOut(Schema):
    """`public_key` is the line for authorized_keys; the private half is never shown."""

    id: int
    name: str
    kind: str
    public_key: str
    fingerprint: str
    nodes: list[str]
    created_at: datetime

    @classmethod
    def of(cls, row: Identity) -> IdentityOut:
        nodes = [node.name for node in row.nodes.all() if not node.removed_at]
        same = ("id", "name", "kind", "public_key", "created_at")
        print_ = _fingerprint(row.public_key)
        return cls(nodes=nodes, fingerprint=print_, **{name: getattr(row, name) for name in same})


class ClusterOut(Schema):
    """Nodes that can train together."""

    id: int
    name: str
    nodes: list[NodeOut]

    @classmethod
    def of(cls, cluster: Cluster) -> ClusterOut:
        nodes = cluster.nodes.filter(removed_at=None).select_related("cluster", "identity", "jump")
        return cls(
            id=cluster.pk,
            name=cluster.name,
            nodes=[NodeOut.of(node) for node in nodes.prefetch_related("claims__attempt")],
        )
