"""How many times `limits.hang_seconds` a part of a rank's work may take without a sign of progress on the way.

A step has one at each of its parts. Told by the rank's own watch on hangs, and by notices, for the same parts.
"""

from __future__ import annotations

TIMES = {"loading": 6.0, "save": 6.0, "closing": 6.0}


def times(part: str) -> float:
    return TIMES.get(part, 1.0)
