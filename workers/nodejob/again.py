"""A job that is started once more, in the folder of its earlier start."""

from __future__ import annotations

from webapp.fleet.ssh import CommandFailed, Host

from .. import group
from ..end.finish import KILL_SECONDS
from ..group import Member


async def ready(member: Member, host: Host, start: int) -> bool:
    """Clear the folder for this start; return whether its files are to be put. What an earlier start left is ended."""
    folder = str(member.folder.path)
    found = await group.training(member, host, "again", folder, str(start))
    if found.get("start") != start:
        await group.training(member, host, "signal", folder, "kill", seconds=KILL_SECONDS)
        found = await group.training(member, host, "again", folder, str(start))
    if found.get("start") != start:
        raise CommandFailed(member.name, f"readying {folder} for start {start}", str(found))
    return found.get("state") in ("ready", "absent")
