"""Where the time of a line goes (see tests.bench.trace), and the processors' meanwhile."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import BrowserContext, Page

from tests.bench import trace

from .spent import Spent


class Trace:
    """Listens to the service from its making on."""

    def __init__(self) -> None:
        self._nudges = trace.Nudges(os.environ["SHARDBOARD_REDIS_URL"])

    def watch(self, context: BrowserContext) -> None:
        """Note from now on what comes to the pages of `context`."""
        trace.watch_frames(context)

    @contextmanager
    def counted(self, page: Page) -> Iterator[None]:
        """Count what processes take for as long as this lasts."""
        spent = Spent()
        yield
        self._spent, self._sent = spent.table(), trace.sent(page)

    def tell(self, lines: list[Any], drawn: trace.Times) -> None:
        written = {line.step: line.at.timestamp() * 1000 for line in lines}
        stored = {line.step: line.received_at.timestamp() * 1000 for line in lines}
        stages = {"written": written, "stored": stored, "nudged": self._nudges.after(stored), "sent": self._sent}
        print(trace.table(stages | {"drawn": drawn}), self._spent, sep="\n", flush=True)
