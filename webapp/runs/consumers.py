"""The socket of a run page: sends batches past the page's cursor whenever there is something to see."""

from __future__ import annotations

import asyncio
import json
import logging
from importlib import import_module
from time import monotonic
from typing import Any

from channels.auth import get_user
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncJsonWebsocketConsumer
from django.conf import settings
from django.utils import timezone
from redis.exceptions import RedisError

from .live import batch
from .models import Run
from .nudge import group

log = logging.getLogger(__name__)

# After a batch the page rests this many times as long as it took to make, and no longer than the longest: a burst of
# lines costs few batches, and a lone line is not held up by the log line beside it.
REST, LONGEST_REST = 4.0, 0.05
LOOK_ANYWAY = 5.0  # seconds after which rows are read without a nudge: one may have been lost
BELIEVED_SECONDS = 5.0  # that a session is taken for good
LARGEST = 2**63  # what a row's number holds
NOT_LOGGED_IN, UNKNOWN_RUN, BAD_MESSAGE, TRY_AGAIN = 4401, 4404, 4400, 1013


class RunConsumer(AsyncJsonWebsocketConsumer):
    """The page sends {"after": N} once; it gets batches from there on, one at a time.

    One batch is in flight at most: what comes meanwhile is read with the next, so a slow page gets
    no queue of stale messages. Every way this can fail closes the socket; the page comes again with its cursor.
    """

    follower: asyncio.Task[None] | None = None
    believed_until = 0.0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            await super().__call__(scope, receive, send)
        except (RedisError, OSError) as error:
            log.warning("socket closed, no channel layer: %s", error)
            await send({"type": "websocket.close", "code": TRY_AGAIN})

    async def connect(self) -> None:
        if not self.scope["user"].is_authenticated:
            await self.close(NOT_LOGGED_IN)
            return
        self.run_id = self.scope["url_route"]["kwargs"]["run_id"]
        if not await Run.objects.filter(pk=self.run_id).aexists():
            await self.close(UNKNOWN_RUN)
            return
        self.wanted = asyncio.Event()
        await self.accept()

    async def receive_json(self, content: Any, **kwargs: Any) -> None:
        after = content.get("after") if isinstance(content, dict) else None
        if not isinstance(after, int) or isinstance(after, bool) or not 0 <= after < LARGEST:
            await self.close(BAD_MESSAGE)
        elif self.follower is None:
            self.follower = asyncio.create_task(self._follow(after))

    @classmethod
    async def decode_json(cls, text_data: str) -> Any:
        try:
            return json.loads(text_data)
        except (ValueError, RecursionError):
            return None

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None, **kwargs: Any) -> None:
        await super().receive(text_data or "null", None, **kwargs)

    async def look(self, message: dict[str, Any]) -> None:
        """Somebody wrote to the journals of these runs."""
        if self.run_id in message["runs"]:
            self.wanted.set()

    async def disconnect(self, code: int) -> None:
        if self.follower is not None:
            self.follower.cancel()
            try:
                await self.channel_layer.group_discard(group(self.run_id), self.channel_name)
            except (RedisError, OSError) as error:
                log.warning("run %s: left without saying so: %s", self.run_id, error)

    async def _follow(self, after: int) -> None:
        try:
            # First join, then read: what is written in between is nudged.
            await self.channel_layer.group_add(group(self.run_id), self.channel_name)
            while await self._still_logged_in():
                self.wanted.clear()
                began = monotonic()
                after = await self._catch_up(after)
                await asyncio.sleep(min(LONGEST_REST, REST * (monotonic() - began)))
                await self._wait()
            await self.close(NOT_LOGGED_IN)
        except (RedisError, OSError) as error:
            log.warning("run %s: socket closed: %s", self.run_id, error)
            await self.close(TRY_AGAIN)
        except Exception:  # a task of its own: nobody else would hear of it
            log.exception("run %s: socket closed", self.run_id)
            await self.close(TRY_AGAIN)

    async def _still_logged_in(self) -> bool:
        """Ask the session's row again, now and then: a logout, its end or a new password ends the socket too."""
        if monotonic() >= self.believed_until:
            self.believed_until = monotonic() + BELIEVED_SECONDS
            session = import_module(settings.SESSION_ENGINE).SessionStore(self.scope["session"].session_key)
            self.scope["user"] = await get_user({"session": session})
        return bool(self.scope["user"].is_authenticated)

    async def _catch_up(self, after: int) -> int:
        more = True
        while more:
            found = await database_sync_to_async(batch)(self.run_id, after)
            if found["cursor"] > after:
                await self.send_json(found)
            after, more = found["cursor"], found["more"]
        return after

    async def _wait(self) -> None:
        try:
            await asyncio.wait_for(self.wanted.wait(), LOOK_ANYWAY)
        except TimeoutError:
            await self.send_json({"now": timezone.now().isoformat()})

    @classmethod
    async def encode_json(cls, content: Any) -> str:
        return json.dumps(content, separators=(",", ":"), allow_nan=False)
