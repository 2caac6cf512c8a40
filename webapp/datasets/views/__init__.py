"""Pages of data sets."""

from .detail import detail
from .index import index

__all__ = ["detail", "index"]
