"""stopping: ask, wait, insist; the run has stopped when no process of it is left on any node."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from training.spec.faults import Reason
from webapp.fleet.ssh import Host
from webapp.runs import lifecycle
from webapp.runs.models import Attempt, Run
from webapp.runs.states import RunState

from .. import group
from ..group import Answer, Member
from . import finish, outcome

LOOK_SECONDS = 5.0


def stop(run: Run, attempt: Attempt) -> float | None:
    members = finish.prepared(attempt)
    if not members:
        reason, text = Reason.STOPPED_UNSAVED, "stopped before anything was started"
        lifecycle.move(run, RunState.STOPPED, actor="worker", cause=text, reason=reason, text=text)
        return None
    ended = {e.rank for e in finish.exits(attempt)}
    left = [member for member in members if member.rank not in ended]
    asked = attempt.stop_requested_at or timezone.now()
    limit = asked + timedelta(seconds=run.parsed_recipe().limits.stop_seconds)
    patient = attempt.world_size and timezone.now() < limit  # before training there is nothing to save
    if left and patient:
        _ask(left)
        return LOOK_SECONDS
    if left:
        finish.kill(left)
    return finish.conclude(run, attempt, outcome.of_stopped, limit)


def _ask(members: list[Member]) -> None:
    """Ask for a save and an end. Asking again changes nothing; a node that can't be reached is asked later."""

    async def one(member: Member, host: Host) -> Answer:
        return await group.training(member, host, "signal", str(member.folder.path), "term")

    group.on_each(members, one)
