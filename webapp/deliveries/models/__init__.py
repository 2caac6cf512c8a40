from .delivery import Delivery
from .destination import Destination

__all__ = ["Delivery", "Destination"]
