"""A step that takes long, as bringing shards together does, ends where somebody asks for the end of it meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from asgiref.sync import sync_to_async

from webapp.runs.models import NodeJob

POLL_SECONDS = 2.0
T = TypeVar("T")


class BrokenOff(Exception):
    """The work was not done to its end, for that was asked."""


async def unless(is_asked: Callable[[], bool], work: Coroutine[Any, Any, T]) -> T:
    """Return what `work` does; raise BrokenOff once `is_asked`, which asks the database, says so."""
    working = asyncio.create_task(work)
    try:
        while not (await asyncio.wait([working], timeout=POLL_SECONDS))[0]:
            if await sync_to_async(is_asked)():
                raise BrokenOff
        return await working
    finally:
        working.cancel()  # also where the database could not be asked
        await asyncio.gather(working, return_exceptions=True)


async def unless_cancelled(job: NodeJob, work: Coroutine[Any, Any, None]) -> bool:
    """Do `work`; return False where it was broken off because somebody asked for the job's end."""
    try:
        await unless(partial(_is_asked, job), work)
    except BrokenOff:
        return False
    return True


def _is_asked(job: NodeJob) -> bool:
    return type(job)._default_manager.exclude(cancel_asked_at=None).filter(pk=job.pk).exists()
