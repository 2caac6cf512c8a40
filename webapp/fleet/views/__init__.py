"""Pages of clusters, nodes and identities."""

from .add import add, confirm
from .identities import identities
from .nodes import cards, check, nodes, service
from .repin import repin

__all__ = ["add", "cards", "check", "confirm", "identities", "nodes", "repin", "service"]
