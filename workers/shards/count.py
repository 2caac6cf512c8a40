"""How many bytes of a checkpoint have been brought, over all that bring some at once."""

from __future__ import annotations

import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable

Tell = Callable[[int, int], Awaitable[None]]
SAY_SECONDS = 1.0


class Count:
    """Bytes brought so far, told about once a second: how many are there, and how many there are to be."""

    def __init__(self, total: int, tell: Tell | None):
        self.total, self._tell, self.done, self._said = total, tell, 0, -math.inf

    async def more(self, count: int) -> None:
        """Count so many bytes; of a try that failed, fewer than none."""
        self.done += count
        if self._tell and (time.monotonic() - self._said >= SAY_SECONDS or self.done >= self.total):
            self._said = time.monotonic()
            await self._tell(self.done, self.total)

    def share(self) -> Share:
        """Return the part of it that one way brings, which is told from outside how far it is."""
        return Share(self)

    async def through(self, blocks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for block in blocks:
            await self.more(len(block))
            yield block


class Share:
    """What one of several ways has brought."""

    def __init__(self, count: Count):
        self._count, self._reached = count, 0

    async def reach(self, done: int) -> None:
        """Have brought `done` bytes by now; none where a try has failed."""
        more, self._reached = done - self._reached, done
        await self._count.more(more)
