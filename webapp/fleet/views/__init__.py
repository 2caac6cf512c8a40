"""Pages of clusters, nodes and identities."""

from .add import add, confirm
from .edit import edit
from .identities import agent, delete_identity, identities, next_key, paste, replace_key
from .making import interpreter, look_for_pythons, make_interpreter, stop_making
from .node import node, now
from .nodes import check, nodes, some_cards
from .repin import repin
from .service import bring_back, remove, service

__all__ = [
    "add",
    "agent",
    "bring_back",
    "check",
    "confirm",
    "delete_identity",
    "edit",
    "identities",
    "interpreter",
    "look_for_pythons",
    "make_interpreter",
    "next_key",
    "node",
    "nodes",
    "now",
    "paste",
    "remove",
    "repin",
    "replace_key",
    "service",
    "some_cards",
    "stop_making",
]
