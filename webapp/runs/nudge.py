"""Say "look again" to whoever watches a run. Carries no fact, so it may be lost.

One message tells of all runs of a transaction, and goes to every process that has pages (see waking): whoever writes
waits until it is sent, and a message for each run, or for each of a few groups, was much of what a busy follower did.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.db import transaction
from redis.exceptions import RedisError

from training.spec.events import Kind

if TYPE_CHECKING:
    from .fresh import Fresh

log = logging.getLogger(__name__)
GROUP = "runs"
CALM = (Kind.SAMPLE, "log")  # most lines of most runs; the next metric, which mostly comes soon, brings them along


def hasty(events: Iterable[Fresh]) -> set[int]:
    """Return the runs for which one of these events should be seen at once."""
    return {event.run_id for event in events if event.kind not in CALM}


def nudge_on_commit(run_ids: Iterable[int], calm: Iterable[int] = ()) -> None:
    """Nudge these runs' pages once the transaction is over; those of `calm` look a little later (see RunConsumer)."""
    transaction.on_commit(lambda: nudge(run_ids, calm))


def nudge(run_ids: Iterable[int], calm: Iterable[int] = ()) -> None:
    """Send {"type": "look", "runs": [id...], "calm": [id...]}."""
    hurried = set(run_ids)
    rest = set(calm) - hurried
    if hurried or rest:
        async_to_sync(_send)({"type": "look", "runs": sorted(hurried), "calm": sorted(rest)})


async def _send(message: dict[str, Any]) -> None:
    layer = get_channel_layer()
    if layer is None:
        return
    try:
        await layer.group_send(GROUP, message)
    except (RedisError, OSError) as error:
        log.warning("no nudge sent, pages look again by themselves: %s: %s", error, message)
