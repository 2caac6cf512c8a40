"""Every case, in the order in which they are played: first those that one run survives, and its stop."""

from __future__ import annotations

from . import ends, goeson, links, refused, service, shared, stops
from .case import CASES

__all__ = ["EVERY", "ends", "goeson", "links", "refused", "service", "shared", "stops"]

SURVIVED = [case for case in CASES.values() if case.do.__module__ in (service.__name__, links.__name__)]
EVERY = (*SURVIVED, *(case for case in CASES.values() if case not in SURVIVED))
