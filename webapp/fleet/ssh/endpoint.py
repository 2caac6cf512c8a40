"""How to reach a node."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..models import Node
from .errors import JumpCircle


@dataclass(frozen=True)
class Endpoint:
    """How to reach a node; made from its row where the database may be asked. Equal ones share a connection.

    Without a `private_key` an SSH agent holds it: then `public_key` says which. `jump`: the host through which it is
    reached, which may have one itself.
    """

    name: str
    address: str
    port: int
    user: str
    host_key: str
    private_key: str = field(repr=False)
    public_key: str = ""
    jump: Endpoint | None = None

    @property
    def where(self) -> str:
        return f"{self.address} port {self.port}"

    @classmethod
    def of(cls, node: Node) -> Endpoint:
        """Return the way to `node`, through all its jump hosts. Raises JumpCircle."""
        found: Endpoint | None = None
        for hop in reversed(_hops(node)):
            found = cls._of_one(hop, found)
        assert found is not None
        return found

    @classmethod
    def _of_one(cls, node: Node, jump: Endpoint | None) -> Endpoint:
        identity = node.identity
        private = identity.private_key
        public = "" if private else identity.public_key
        return cls(node.name, node.address, node.port, node.user, node.host_key, private, public, jump)


def _hops(node: Node) -> list[Node]:
    """Return the node, its jump host, that one's jump host, and so on."""
    hops = [node]
    while (hop := hops[-1].jump) is not None:
        hops.append(hop)
        if hop.pk in [earlier.pk for earlier in hops[:-1]]:
            raise JumpCircle(node.name, [each.name for each in hops])
    return hops
