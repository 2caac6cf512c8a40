from .change import NodeChange
from .claim import Claim
from .cluster import Cluster
from .identity import Identity
from .next_key import NextKey
from .node import DESCRIBED, Node
from .provision import Provision

__all__ = ["DESCRIBED", "Claim", "Cluster", "Identity", "NextKey", "Node", "NodeChange", "Provision"]
