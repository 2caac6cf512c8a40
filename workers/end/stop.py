"""stopping: ask for a save, wait, insist; or end it now. The run has stopped when each node has proven that nothing
of it is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from django.utils import timezone

from training.spec.faults import Reason
from webapp.fleet.ssh import Host, SshError
from webapp.runs import actions, lifecycle
from webapp.runs.models import Attempt, Run
from webapp.runs.states import RunState

from .. import group
from ..group import Answer, Member
from . import finish, outcome, watch

LOOK_SECONDS = 5.0  # while nothing is heard: an exit line calls for a look at once


def stop(run: Run, attempt: Attempt) -> float | None:
    members = finish.prepared(attempt)
    if not members:
        reason, text = Reason.STOPPED_UNSAVED, "stopped before anything was started"
        lifecycle.move(run, RunState.STOPPED, actor="worker", cause=text, reason=reason, text=text)
        return None
    exits = finish.exits(attempt)
    ended = {e.rank for e in exits}
    left = [member for member in members if member.rank not in ended]
    limit = until(run, attempt)
    if left and timezone.now() < limit and not _save_is_lost(exits):
        _tell(attempt, left)
        watch.ask_the_silent(attempt)
        return LOOK_SECONDS
    if left:
        finish.kill(left)
    return finish.conclude(run, attempt, outcome.of_stopped, min(limit, _last(exits) or limit))


def until(run: Run, attempt: Attempt) -> datetime:
    """Return until when the ranks may finish their step and save: not at all where nothing is to be saved."""
    asked = attempt.stop_requested_at or timezone.now()
    if attempt.stop_now_at:
        return attempt.stop_now_at
    return asked + timedelta(seconds=run.parsed_recipe().limits.stop_seconds) if attempt.world_size else asked


def _last(exits: Sequence[outcome.Exit]) -> datetime | None:
    return max((datetime.fromtimestamp(e.at, UTC) for e in exits if e.at > 0), default=None)


def _save_is_lost(exits: Sequence[outcome.Exit]) -> bool:
    """One node's part of the save is missing for good: the others would wait for it until their time is over."""
    return any(e.reason not in outcome.CLEAN for e in exits)


def _tell(attempt: Attempt, members: Sequence[Member]) -> None:
    """Ask each node once for a save and an end; one that can't be reached is asked again later."""
    told = set(attempt.placements.exclude(stop_told_at=None).values_list("rank", flat=True))

    async def one(member: Member, host: Host) -> Answer:
        return await group.training(member, host, "signal", str(member.folder.path), "term")

    answers = group.on_each([member for member in members if member.rank not in told], one)
    reached = [rank for rank, answer in answers.items() if not isinstance(answer, SshError)]
    if reached:
        actions.told(attempt, reached)
