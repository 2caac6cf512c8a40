"""Pages of data sets."""

from .detail import detail
from .index import index
from .upload import upload

__all__ = ["detail", "index", "upload"]
