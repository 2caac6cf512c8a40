"""Say "look again" to whoever watches a run. Carries no fact, so it may be lost.

Pages are told in a few groups, each of many runs: a message per run would be most of what a busy follower does.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.db import transaction
from redis.exceptions import RedisError

from training.spec.events import Kind

if TYPE_CHECKING:
    from .fresh import Fresh

log = logging.getLogger(__name__)
GROUPS = 16
CALM = (Kind.SAMPLE, "log")  # most lines of most runs; the next metric, which mostly comes soon, brings them along


def group(run_id: int) -> str:
    """Return the group in which the run's pages are."""
    return f"runs.{run_id % GROUPS}"


def hasty(events: Iterable[Fresh]) -> set[int]:
    """Return the runs for which one of these events should be seen at once."""
    return {event.run_id for event in events if event.kind not in CALM}


def nudge_on_commit(run_ids: Iterable[int], calm: Iterable[int] = ()) -> None:
    """Nudge these runs' pages once the transaction is over; those of `calm` look a little later (see RunConsumer)."""
    transaction.on_commit(lambda: nudge(run_ids, calm))


def nudge(run_ids: Iterable[int], calm: Iterable[int] = ()) -> None:
    """Send {"type": "look", "runs": [id...], "calm": [id...]} to the groups of these runs."""
    groups: dict[str, dict[str, list[int]]] = defaultdict(lambda: {"runs": [], "calm": []})
    hurried = set(run_ids)
    for how, ids in (("runs", hurried), ("calm", set(calm) - hurried)):
        for run_id in sorted(ids):
            groups[group(run_id)][how].append(run_id)
    if groups:
        async_to_sync(_send)(groups)


async def _send(groups: dict[str, dict[str, list[int]]]) -> None:
    layer = get_channel_layer()
    if layer is None:
        return
    try:
        sending = (layer.group_send(name, {"type": "look", **runs}) for name, runs in groups.items())
        await asyncio.gather(*sending)
    except (RedisError, OSError) as error:
        log.warning("runs %s: no nudge sent, pages look again by themselves: %s", list(groups.values()), error)
