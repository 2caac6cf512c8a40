"""What a cancelled export has written goes, and what nothing can go on from; what another leaves is measured."""

from __future__ import annotations

import json
from pathlib import PurePosixPath

from django.db import transaction

from training.spec.folder import EXPORT_RECORD, partial_name
from webapp.fleet.ssh import Host, SshError
from webapp.runs import journal
from webapp.runs.models import Export

from .. import group
from ..group import Member

LARGEST = 2**53  # bytes that a node may claim of a file


def remove(export: Export, member: Member) -> None:
    """Remove what it has written; where the node can't be reached the journal says that it stays."""
    model = member.folder.model

    async def one(member: Member, host: Host) -> str:
        return await host.check(["rm", "-rf", "--", str(model.with_name(partial_name(model.name))), str(model)])

    for error in group.errors(group.on_each([member], one)):
        with transaction.atomic():
            journal.warn(export.attempt, f"what export {export.pk} has written stays on the node: {error}")


def measure(export: Export, member: Member) -> int | None:
    """Return how many bytes the next start can go on from; None where the node doesn't say."""
    model = member.folder.model

    async def one(member: Member, host: Host) -> int:
        return max([await _noted(host, folder) for folder in (model.with_name(partial_name(model.name)), model)])

    found = group.on_each([member], one)[member.rank]
    return None if isinstance(found, SshError) else found


async def _noted(host: Host, folder: PurePosixPath) -> int:
    """Return the bytes that the record in `folder` says are on the disk; 0 where there is none that can be read."""
    path = str(folder / EXPORT_RECORD)
    if not await host.exists(path):
        return 0
    try:
        sizes = [file["size"] for file in json.loads(await host.read_text(path))["files"].values()]
    except (ValueError, KeyError, TypeError, AttributeError):
        return 0
    return sum(size for size in sizes if type(size) is int and 0 <= size < LARGEST)


def forget_record(export: Export, member: Member) -> None:
    """Remove the record of an export that has told its end, and died before doing so itself; raise what SSH says."""
    path = str(member.folder.model / EXPORT_RECORD)

    async def one(member: Member, host: Host) -> None:
        await host.remove(path)

    for error in group.errors(group.on_each([member], one)):
        raise error
