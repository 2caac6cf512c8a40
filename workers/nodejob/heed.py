"""A step that takes long, as bringing shards together does, ends where the job is cancelled meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from asgiref.sync import sync_to_async

from webapp.runs.models import NodeJob

POLL_SECONDS = 2.0


async def unless_cancelled(job: NodeJob, work: Coroutine[Any, Any, None]) -> bool:
    """Do `work`; return False where it was broken off because somebody asked for the job's end."""
    working = asyncio.create_task(work)
    try:
        while not (await asyncio.wait([working], timeout=POLL_SECONDS))[0]:
            if await sync_to_async(_is_asked)(job):
                return False
        await working
        return True
    finally:
        working.cancel()  # also where the database could not be asked
        await asyncio.gather(working, return_exceptions=True)


def _is_asked(job: NodeJob) -> bool:
    return type(job)._default_manager.exclude(cancel_asked_at=None).filter(pk=job.pk).exists()
