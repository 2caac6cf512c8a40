"""How to reach a node."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..models import Node


@dataclass(frozen=True)
class Endpoint:
    """How to reach a node; made from its row where the database may be asked. Equal ones share a connection."""

    name: str
    address: str
    port: int
    user: str
    host_key: str
    private_key: str = field(repr=False)

    @classmethod
    def of(cls, node: Node) -> Endpoint:
        return cls(node.name, node.address, node.port, node.user, node.host_key, node.identity.private_key)
