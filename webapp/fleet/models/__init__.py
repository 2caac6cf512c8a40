from .change import NodeChange
from .claim import Claim
from .cluster import Cluster
from .identity import Identity
from .next_key import NextKey
from .node import Node

__all__ = ["Claim", "Cluster", "Identity", "NextKey", "Node", "NodeChange"]
