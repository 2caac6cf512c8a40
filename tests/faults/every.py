"""Every case, in the order in which they are played: first those that one run survives, its stop, then the others."""

from __future__ import annotations

from . import links, service
from .case import CASES

__all__ = ["EVERY", "links", "service"]

EVERY = tuple(CASES.values())
