"""A checkpoint's parts: which node has which, and bringing them together."""

from .bring import Account, bring_together
from .count import Tell
from .parts import ROTATED, File, Place, Source, holder_of, manifest_files, source_of

__all__ = [
    "ROTATED",
    "Account",
    "File",
    "Place",
    "Source",
    "Tell",
    "bring_together",
    "holder_of",
    "manifest_files",
    "source_of",
]
