"""Who is woken by nudges: one subscription of this process for all its pages.

With a channel of its own each page woke at the nudges of other runs too, and Channels gives every message of a channel
a turn in a thread of Django's.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from channels.layers import get_channel_layer

from .nudge import GROUP

log = logging.getLogger(__name__)
Wake = Callable[[bool], None]


class Pages:
    """The pages of one event loop, by the run that they show."""

    def __init__(self) -> None:
        self._wakes: dict[int, set[Wake]] = defaultdict(set)
        self._subscribed: asyncio.Task[asyncio.Task[None]] | None = None

    async def hear(self) -> None:
        """Return once nudges are heard. Raises what the channel layer does where it can't be reached."""
        if self._subscribed is None or _has_ended(self._subscribed):
            self._subscribed = asyncio.create_task(self._subscribe())
        await asyncio.shield(self._subscribed)  # one page that leaves takes nothing from the others

    @contextmanager
    def woken(self, run_id: int, wake: Wake) -> Iterator[None]:
        """Within this each nudge of the run is a call of `wake`, with whether it is of what should be seen at once."""
        self._wakes[run_id].add(wake)
        try:
            yield
        finally:
            self._wakes[run_id].remove(wake)
            if not self._wakes[run_id]:
                del self._wakes[run_id]

    async def _subscribe(self) -> asyncio.Task[None]:
        layer: Any = get_channel_layer()
        channel = await layer.new_channel()
        await layer.group_add(GROUP, channel)
        return asyncio.create_task(self._listen(layer, channel))

    async def _listen(self, layer: Any, channel: str) -> None:
        try:
            while True:
                self._nudged(await layer.receive(channel))
        except Exception:  # a task of its own: nobody else would hear of it
            log.exception("nudges are heard again once a page asks; until then pages look by themselves")

    def _nudged(self, message: dict[str, Any]) -> None:
        for how, hurried in (("runs", True), ("calm", False)):
            for run_id in self._wakes.keys() & set(message[how]):
                for wake in tuple(self._wakes[run_id]):
                    wake(hurried)


def _has_ended(subscribed: asyncio.Task[asyncio.Task[None]]) -> bool:
    if not subscribed.done():
        return False
    return subscribed.cancelled() or subscribed.exception() is not None or subscribed.result().done()


_PAGES: WeakKeyDictionary[asyncio.AbstractEventLoop, Pages] = WeakKeyDictionary()


def pages() -> Pages:
    """Return those of the running event loop."""
    return _PAGES.setdefault(asyncio.get_running_loop(), Pages())
