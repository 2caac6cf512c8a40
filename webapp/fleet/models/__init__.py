from .change import NodeChange
from .claim import Claim
from .cluster import Cluster
from .identity import Identity
from .node import Node

__all__ = ["Claim", "Cluster", "Identity", "Node", "NodeChange"]
