"""The socket of a run page: sends batches past the page's cursor whenever there is something to see."""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections import deque
from collections.abc import Coroutine, Sequence
from time import monotonic
from typing import Any

from channels.generic.websocket import AsyncJsonWebsocketConsumer
from django.utils import timezone
from redis.exceptions import RedisError

from .models import Run
from .pace import Pace
from .sharing import BATCHES, Ready, written
from .waking import pages

log = logging.getLogger(__name__)

SOON = 0.15  # seconds that a line of log or a sample waits for a metric to go with
WINDOW = 3  # batches that are sent before the page says that it has taken one
LOOK_ANYWAY = 5.0  # seconds after which rows are read without a nudge: one may have been lost
BELIEVED_SECONDS = 5.0  # that a session is taken for good
LARGEST = 2**63  # what a row's number holds
NOT_LOGGED_IN, UNKNOWN_RUN, BAD_MESSAGE, TRY_AGAIN = 4401, 4404, 4400, 1013


class RunConsumer(AsyncJsonWebsocketConsumer):
    """The page sends {"after": N} once; it gets batches from there on, ten a second at the most (see Pace).

    What comes meanwhile is read with the next, so a slow page gets no queue of stale messages. One that says
    {"after": N, "acks": true} answers each batch with {"seen": its cursor}, and is never sent more than a few that it
    has not taken: however slow it is, what it shows is as new as its slowness allows. What is far behind is told to
    begin anew (see batch). Every way this can fail closes the socket; the page comes again with its cursor.
    """

    channel_layer_alias = "none"  # nudges come by one subscription of the process: see waking
    tasks: Sequence[asyncio.Task[None]] = ()
    acks = False
    soon: asyncio.TimerHandle | None = None

    async def dispatch(self, message: dict[str, Any]) -> None:
        """What a page says is taken at once: Channels would first look after connections, in another thread."""
        if message["type"] == "websocket.receive":
            await self.websocket_receive(message)  # asks no database
        else:
            await super().dispatch(message)

    async def connect(self) -> None:
        if not self.scope["user"].is_authenticated:
            await self.close(NOT_LOGGED_IN)
            return
        self.run_id = self.scope["url_route"]["kwargs"]["run_id"]
        if not await Run.objects.filter(pk=self.run_id).aexists():
            await self.close(UNKNOWN_RUN)
            return
        self.wanted, self.took = asyncio.Event(), asyncio.Event()
        self.pace, self.unseen = Pace(), deque[int]()
        await self.accept()

    async def receive_json(self, content: Any, **kwargs: Any) -> None:
        told = content if isinstance(content, dict) else {}
        number = told.get("seen", told.get("after"))
        if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < LARGEST:
            await self.close(BAD_MESSAGE)
        elif "seen" in told:
            self._saw(number)
        elif not self.tasks:
            self.acks = told.get("acks") is True
            self.tasks = [asyncio.create_task(self._closing(work)) for work in (self._follow(number), self._session())]

    def _saw(self, cursor: int) -> None:
        if cursor in self.unseen:
            while self.unseen.popleft() != cursor:
                pass
            self.took.set()

    @classmethod
    async def decode_json(cls, text_data: str) -> Any:
        try:
            return json.loads(text_data)
        except (ValueError, RecursionError):
            return None

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None, **kwargs: Any) -> None:
        await super().receive(text_data or "null", None, **kwargs)

    def _wake(self, hurried: bool) -> None:
        """Somebody wrote to the run's journal."""
        if hurried:
            self.wanted.set()
        elif self.soon is None:
            self.soon = asyncio.get_running_loop().call_later(SOON, self.wanted.set)

    def _is_read(self) -> None:
        """Forget what was asked for until now: the read that follows has it."""
        self.wanted.clear()
        if self.soon is not None:
            self.soon.cancel()
            self.soon = None

    async def disconnect(self, code: int) -> None:
        self._end()

    def _end(self) -> None:
        """Let go of everything but whoever calls this."""
        for task in self.tasks:
            if task is not asyncio.current_task():
                task.cancel()
        if self.soon is not None:
            self.soon.cancel()

    async def _closing(self, work: Coroutine[Any, Any, int]) -> None:
        """Do `work`, which returns why the socket is to be closed; however it ends, so does the socket."""
        code = TRY_AGAIN
        try:
            code = await work
        except (RedisError, OSError) as error:
            log.warning("run %s: socket closed: %s", self.run_id, error)
        except Exception:  # a task of its own: nobody else would hear of it
            log.exception("run %s: socket closed", self.run_id)
        self._end()
        await self.close(code)

    async def _session(self) -> int:
        """Ask for the session again, now and then: a logout, its end or a new password ends the socket too.

        Beside the batches, which would come late by what that takes; and not for all pages at once, though all come
        again together where the site has been started anew.
        """
        key = self.scope["session"].session_key
        while True:
            await asyncio.sleep(BELIEVED_SECONDS * random.uniform(0.5, 1.0))  # noqa: S311  no secret
            if not await BATCHES.is_logged_in(key):
                return NOT_LOGGED_IN

    async def _follow(self, after: int) -> int:
        """Send batches past `after` for ever; the first answer comes at once, whatever there is."""
        first = True
        with pages().woken(self.run_id, self._wake):
            await pages().hear()  # before the first read: what is written in between is nudged
            while True:
                await self._rest()
                self._is_read()
                found = await BATCHES.after(self.run_id, after)
                if found.cursor != after:
                    await self._send(found)
                elif first:
                    await self._tell_time()
                after, first = found.cursor, False
                if not found.more:
                    await self._wait()

    async def _rest(self) -> None:
        """Wait until the page may be sent to, and has taken what it was sent."""
        await asyncio.sleep(self.pace.wait(monotonic()))
        while len(self.unseen) >= WINDOW:
            self.took.clear()
            await self.took.wait()

    async def _send(self, found: Ready) -> None:
        self.pace.sent(monotonic())
        if self.acks:
            self.unseen.append(found.cursor)
        await self.send(found.text)

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(LOOK_ANYWAY):
                await self.wanted.wait()
        except TimeoutError:
            await self._tell_time()
            await pages().hear()  # nothing came: it may be that nobody listens any more

    async def _tell_time(self) -> None:
        await self.send(written({"now": timezone.now().isoformat()}))
