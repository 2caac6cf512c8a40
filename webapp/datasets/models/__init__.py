from .dataset import Dataset
from .version import Version

__all__ = ["Dataset", "Version"]
