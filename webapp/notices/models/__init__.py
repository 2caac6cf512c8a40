from .notice import Notice
from .watch import Watch

__all__ = ["Notice", "Watch"]
