"""PURE: whether the numbers of a line fit the columns that they are meant for."""

from __future__ import annotations

from .readings import Told

SMALL_INT, INT, BIG_INT = 2**15 - 1, 2**31 - 1, 2**62  # SQLite takes more, PostgreSQL refuses the row


def not_counts(event: Told, *names: str, most: int = BIG_INT) -> str:
    """Return what is wrong with fields that must be whole numbers from 0 to `most`, as their columns hold them."""
    for name in names:
        value = event.data.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
            return f"{name} is {value!r}"[:200]
    return ""
