from .notice import Notice
from .sending import Sending
from .subscription import Subscription
from .watch import Watch

__all__ = ["Notice", "Sending", "Subscription", "Watch"]
