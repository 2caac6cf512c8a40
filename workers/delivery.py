"""Makes a worker outlive its Redis, whatever it has in its hands when the connection goes.

A step acknowledges its message when it ends. Where Redis went away meanwhile, kombu acknowledges on a channel
that is closed, or gives messages back on closing it, and the AttributeError that comes of it ends the whole
worker: at the latest at the third loss under load, with threads as with processes. Neither is needed here. The
sweep finds every row that is due, and the broker delivers again what was not acknowledged; a step delivered
twice only looks twice.
"""

from __future__ import annotations

import logging

from kombu.transport import redis, virtual

log = logging.getLogger(__name__)


class Message(virtual.Message):
    """A message that lets go of a closed channel in place of ending the worker."""

    def ack(self, multiple: bool = False) -> None:
        if self._connection_is_gone():
            log.info("%s not acknowledged, its connection is gone: it comes again", self.delivery_tag)
        else:
            super().ack(multiple)

    def reject(self, requeue: bool = False) -> None:
        if not self._connection_is_gone():
            super().reject(requeue)

    def _connection_is_gone(self) -> bool:
        # kombu only takes the references away when it closes; the message is not told
        transport = self.channel.connection
        return transport is None or transport.client is None


def outlive_redis() -> None:
    """Make every channel of this process hand out such messages and give none back when it closes."""
    redis.Channel.Message = Message
    redis.Channel.do_restore = False
