"""Numbers that people write: row keys in addresses and forms."""

from __future__ import annotations

LONGEST = 18  # digits: what every database's integer column holds; Python itself refuses to read over 4300


def key_of(text: str) -> int | None:
    """Return the number that `text` is; None where it is none, or none that a row could have."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= LONGEST else None
