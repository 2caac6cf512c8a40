"""Says how far a delivery is that the worker carries: the row, and a line in the run's journal that moves pages."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

from asgiref.sync import sync_to_async
from django.db import transaction

from training.spec.deliver.folder import File
from training.spec.events import Kind
from webapp.deliveries.models import Delivery
from webapp.runs import journal, sources

EVERY_SECONDS = 2.0


class Telling:
    def __init__(self, job: Delivery, files: Sequence[File]):
        self.job, self.total, self._told = job, sum(file.size for file in files), 0.0

    async def progress(self, phase: str, done: int) -> None:
        """Tell of `done` bytes, unless something was told just now."""
        if time.monotonic() - self._told >= EVERY_SECONDS:
            self._told = time.monotonic()
            await sync_to_async(self._store)(phase, done)

    async def counted(self, blocks: AsyncIterator[bytes], before: int) -> AsyncIterator[bytes]:
        """Yield the blocks, telling on the way; `before` bytes had arrived."""
        async for block in blocks:
            yield block
            before += len(block)
            await self.progress("send", before)

    async def keep(self, state: dict[str, Any]) -> None:
        """Store how far it is; `result` in it ends the delivery."""
        await sync_to_async(self._keep)(state)

    @transaction.atomic
    def _store(self, phase: str, done: int) -> None:
        data = {"phase": phase, "done": done, "total": self.total}
        journal.note(self.job.attempt, Kind.PROGRESS, data, source=sources.events(self.job.KIND, self.job.pk))
        Delivery.objects.filter(pk=self.job.pk).update(**data)

    def _keep(self, state: dict[str, Any]) -> None:
        result = state.pop("result", {})
        Delivery.objects.filter(pk=self.job.pk).update(carried=state, result=result)
