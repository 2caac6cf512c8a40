from .answer import Answer
from .trial import Trial

__all__ = ["Answer", "Trial"]
