"""A file that tells how much of it was read."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any


class Counted(io.BufferedReader):
    """What the hub's library reads from. `on_bytes` hears of each byte once, however often it is sent again."""

    def __init__(self, raw: Any, on_bytes: Callable[[int], None]):
        super().__init__(raw)
        self._on_bytes, self._furthest = on_bytes, 0

    def listen(self, on_bytes: Callable[[int], None]) -> None:
        """Begin anew, for another listener."""
        self._on_bytes, self._furthest = on_bytes, 0

    @property
    def furthest(self) -> int:
        return self._furthest

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        position = self.tell()
        if position > self._furthest:
            new, self._furthest = position - self._furthest, position
            self._on_bytes(new)
        return data
