"""Say "look again" to whoever watches a run. Carries no fact, so it may be lost."""

from __future__ import annotations

import logging

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.db import transaction
from redis.exceptions import RedisError

log = logging.getLogger(__name__)


def group(run_id: int) -> str:
    return f"run.{run_id}"


def nudge_on_commit(run_id: int) -> None:
    transaction.on_commit(lambda: nudge(run_id))


def nudge(run_id: int) -> None:
    layer = get_channel_layer()
    if layer is None:
        return
    try:
        async_to_sync(layer.group_send)(group(run_id), {"type": "look"})
    except (RedisError, OSError) as error:
        log.warning("run %s: no nudge sent, pages look again by themselves: %s", run_id, error)
