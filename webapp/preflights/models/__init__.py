from .cell import Cell, State
from .preflight import Preflight

__all__ = ["Cell", "Preflight", "State"]
