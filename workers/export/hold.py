"""While an export needs a checkpoint, an empty file in its folder on each node keeps the training from deleting it."""

from __future__ import annotations

from django.db import transaction

from training.spec.folder import checkpoint_name, hold_name
from webapp.fleet.ssh import Host
from webapp.runs import journal
from webapp.runs.models import Export

from .. import group
from ..group import Member
from ..launch.shards import Source


def put(export: Export, source: Source) -> None:
    """Hold the checkpoint wherever it is; raise the first node's error."""

    async def one(member: Member, host: Host) -> None:
        folder = source.folder_on(member.slot)
        if await host.exists(str(folder)):
            await host.put_text(str(folder / hold_name(export.pk)), "")

    for error in group.errors(group.on_each(source.members, one)):
        raise error


def take_away(export: Export, source: Source) -> None:
    """Let go of it; a node that can't be reached keeps its checkpoint, and the journal says so."""

    async def one(member: Member, host: Host) -> None:
        await host.remove(str(source.folder_on(member.slot) / hold_name(export.pk)))

    for error in group.errors(group.on_each(source.members, one)):
        text = f"{hold_name(export.pk)} stays in {checkpoint_name(source.step)}, which is not deleted then: {error}"
        with transaction.atomic():
            journal.warn(export.checkpoint.attempt, text)
