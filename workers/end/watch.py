"""running: nothing to do until a node has ended, or is silent for too long."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.db.models import Q
from django.utils import timezone

from training.spec.faults import Reason
from webapp.fleet.ssh import Host, SshError
from webapp.runs import reach
from webapp.runs.models import Attempt, Placement, Run

from .. import group
from ..group import Answer, Member
from . import finish, lost, outcome
from .heard import heard

LOOK_SECONDS = 15.0
SILENCE = timedelta(seconds=30)  # a supervisor writes a sample a second
GRACE = timedelta(seconds=60)  # between the first node that has completed and the last


def watch(run: Run, attempt: Attempt) -> float | None:
    ask_the_silent(attempt)
    lost.give_up(attempt)
    return look(run, attempt)


def look(run: Run, attempt: Attempt) -> float | None:
    """End the run when all nodes have ended; end the others when one has failed."""
    exits = finish.exits(attempt)
    if not exits:
        return LOOK_SECONDS
    first = datetime.fromtimestamp(min(e.at for e in exits), UTC) if all(e.at > 0 for e in exits) else timezone.now()
    ended = {e.rank for e in exits}
    others = [member for member in finish.prepared(attempt) if member.rank not in ended]
    if not others:
        return finish.conclude(run, attempt, outcome.of_ended, first)
    failed = any(e.reason not in outcome.CLEAN for e in exits)
    if not failed and timezone.now() < first + GRACE:
        return finish.RETRY_SECONDS
    finish.kill(others)
    return finish.conclude(run, attempt, outcome.of_ended, first)


def ask_the_silent(attempt: Attempt) -> None:
    """Ask nodes over SSH of which nothing was heard for a while: the supervisor, or the follower, may be gone."""
    rows = attempt.placements.filter(exit__isnull=True).exclude(started_at=None).select_related("node__identity")
    silent = [group.of_placement(attempt, row) for row in rows if _is_silent(attempt, row)]
    if not silent:
        return

    async def ask(member: Member, host: Host) -> Answer:
        return await group.training(member, host, "status", str(member.folder.path))

    for rank, status in group.on_each(silent, ask).items():
        placement = Placement.objects.filter(attempt=attempt, rank=rank)
        if isinstance(status, SshError):
            reach.show(attempt, Q(rank=rank), reachable=False)
            continue
        reach.show(attempt, Q(rank=rank), reachable=True)
        if found := finish.exit_of(status):
            placement.filter(exit__isnull=True).update(exit=found)
        elif status.get("state") in ("absent", "ready"):
            gone = finish.made_up(Reason.SUPERVISOR_LOST, "the job's folder has vanished")
            placement.filter(exit__isnull=True).update(exit=gone)


def _is_silent(attempt: Attempt, placement: Placement) -> bool:
    last = max(filter(None, (heard(attempt, f"node@{placement.rank}"), placement.started_at)))
    return bool(last < timezone.now() - SILENCE)
