"""From the first process to the last: come up, keep going, end in order."""

from __future__ import annotations

import asyncio
import signal
from dataclasses import dataclass

from .children import Keeper
from .health import wait_for_health, wait_for_port
from .leftovers import stop_training
from .place import Place
from .say import say
from .stack import NODES, Stack


@dataclass
class Session:
    """`password`: the admin's, where one was given. Django is set up and the rows are there."""

    place: Place
    stack: Stack
    demo: bool
    password: str

    async def run(self) -> int:
        """Return 0 when asked to end; raise GaveUp or TimeoutError where it can't come up or go on."""
        keeper = Keeper(self.place.logs, say)
        enough = asyncio.create_task(_until_enough(keeper))
        up = asyncio.create_task(self._come_up(keeper))
        try:
            await asyncio.wait([enough, up], return_when=asyncio.FIRST_COMPLETED)
            if up.done():
                up.result()
            await enough
        finally:
            up.cancel()
            await self._end(keeper)
        return 0

    async def _come_up(self, keeper: Keeper) -> None:
        say(f"starting {', '.join(child.name for child in [*self.stack.base, *self.stack.service])}: some 15 seconds")
        keeper.start(self.stack.base)
        await asyncio.gather(*(wait_for_port(port) for port in self.stack.ports.values()))
        keeper.start(self.stack.service)
        await wait_for_health(self.stack.address)
        await self._show_admin()
        if self.demo:
            await self._show_run()
        say(f"ready: {self.stack.address}  (Ctrl-C ends everything)")

    async def _show_admin(self) -> None:
        from .admin import ADMIN, ensure_admin

        if made_up := await asyncio.to_thread(ensure_admin, self.password):
            say(f"account: {ADMIN}  password: {made_up}  (shown this once)")

    async def _show_run(self) -> None:
        from .first_run import first_run

        run, launched = await asyncio.to_thread(first_run)
        say(f"{'first' if launched else 'newest'} run: {self.stack.address}{run.get_absolute_url()}")
        if launched:
            say("its first step comes in a minute or two: the ranks load torch and the model")

    async def _end(self, keeper: Keeper) -> None:
        """First what could start new work, then training, then what that stands on."""
        say("ending everything")
        await keeper.stop(self.stack.service)
        await stop_training([self.place.scratch(name) for name in NODES])
        await keeper.stop(self.stack.base)


async def _until_enough(keeper: Keeper) -> None:
    """Return when asked to end; raise GaveUp where a child can't be kept."""
    asked = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # Asked twice is asked once: make hands on a TERM that its whole group got already.
        asyncio.get_running_loop().add_signal_handler(number, asked.set)
    ended = asyncio.create_task(asked.wait())
    given_up = asyncio.create_task(keeper.failure())
    await asyncio.wait([ended, given_up], return_when=asyncio.FIRST_COMPLETED)
    if given_up.done():
        given_up.result()
