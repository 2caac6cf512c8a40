"""What a cancelled export was writing goes; what a killed one was writing stays, for it to go on from."""

from __future__ import annotations

from django.db import transaction

from training.spec.folder import partial_name
from webapp.fleet.ssh import Host
from webapp.runs import journal
from webapp.runs.models import Export

from .. import group
from ..group import Member


def remove(export: Export, member: Member) -> None:
    """Remove the unfinished folder; where the node can't be reached the journal says that it stays."""
    model = member.folder.model

    async def one(member: Member, host: Host) -> str:
        return await host.check(["rm", "-rf", "--", str(model.with_name(partial_name(model.name)))])

    for error in group.errors(group.on_each([member], one)):
        with transaction.atomic():
            journal.warn(export.attempt, f"the unfinished files of export {export.pk} stay on the node: {error}")
