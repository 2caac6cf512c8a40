"""How long loading took: making the model and filling its shards, without what happens in between."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class Timing:
    """Adds up the seconds of what is done in it."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def spent_in(self, act: Callable[[], T]) -> T:
        begun = time.monotonic()
        try:
            return act()
        finally:
            self.seconds += time.monotonic() - begun
