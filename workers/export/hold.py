"""While an export needs a checkpoint, an empty file in its folder on each node keeps the training from deleting it."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

from django.db import transaction

from training.spec.folder import checkpoint_name, hold_name
from training.spec.lint import Refused
from webapp.fleet.ssh import Host
from webapp.runs import actions, journal
from webapp.runs.models import Export

from .. import group
from ..group import Member
from ..shards import Source

UPKEEP_AFTER = timedelta(minutes=1)  # the export counts as ended by then


def put(export: Export, source: Source) -> None:
    """Hold the checkpoint wherever it is; raise the first node's error."""

    async def one(member: Member, host: Host) -> None:
        folder = source.folder_on(member.slot)
        if await host.exists(str(folder)):
            await host.put_text(str(folder / hold_name(export.pk)), "")

    for error in group.errors(group.on_each(source.members, one)):
        raise error


def take_away(export: Export, source: Source) -> None:
    """Let go of it; what stays on a node that can't be reached is left to the checkpoint's upkeep, and told."""

    async def one(member: Member, host: Host) -> None:
        await host.remove(str(source.folder_on(member.slot) / hold_name(export.pk)))

    errors = group.errors(group.on_each(source.members, one))
    for error in errors:
        name = checkpoint_name(source.step)
        text = f"{hold_name(export.pk)} keeps {name} from being deleted until the node can be reached: {error}"
        with transaction.atomic():
            journal.warn(export.checkpoint.attempt, text)
    if errors:
        with suppress(Refused):  # being deleted, it is looked after already
            actions.look_at_checkpoint(export.checkpoint, UPKEEP_AFTER)
