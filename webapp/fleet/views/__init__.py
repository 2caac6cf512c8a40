"""Pages of clusters, nodes and identities."""

from .add import add, confirm
from .edit import edit
from .identities import identities
from .node import node, now
from .nodes import check, nodes, some_cards
from .repin import repin
from .service import bring_back, remove, service

__all__ = [
    "add",
    "bring_back",
    "check",
    "confirm",
    "edit",
    "identities",
    "node",
    "nodes",
    "now",
    "remove",
    "repin",
    "service",
    "some_cards",
]
