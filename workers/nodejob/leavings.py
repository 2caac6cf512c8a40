"""What is asked of the node when a job there is to end, and what must not stay behind."""

from __future__ import annotations

from django.db import transaction

from webapp.fleet.ssh import Host
from webapp.runs import journal
from webapp.runs.models import NodeJob

from .. import group
from ..end.finish import KILL_SECONDS
from ..group import Answer, Member


def signal(member: Member, how: str) -> None:
    """Ask the job to stop (`term`) or end it (`kill`); raise what SSH says."""

    async def one(member: Member, host: Host) -> Answer:
        return await group.training(member, host, "signal", str(member.folder.path), how, seconds=KILL_SECONDS)

    for error in group.errors(group.on_each([member], one)):
        raise error


def take_away_env(job: NodeJob, member: Member) -> None:
    """Remove the file that holds the job's secrets; where the node can't be reached the journal says that it stays."""

    async def one(member: Member, host: Host) -> None:
        await host.remove(str(member.folder.env))

    for error in group.errors(group.on_each([member], one)):
        with transaction.atomic():
            journal.warn(job.attempt, f"{member.folder.env} stays on the node, readable for its user alone: {error}")
