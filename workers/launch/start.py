"""starting: one supervisor a node, then wait until rank 0 reports the world it really has."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.utils import timezone

from training.spec.faults import Reason
from training.spec.plan import start_argv
from webapp.fleet.ssh import Host
from webapp.runs import lifecycle
from webapp.runs.models import Attempt, Placement, Run
from webapp.runs.states import RunState

from .. import group
from ..end import finish, lost, watch
from ..end.ending import End
from ..follow import streams
from ..group import Answer, Member

LIMIT = timedelta(hours=2)  # a large model on a slow disk takes its time to load
LOOK_SECONDS = 10.0


def start(run: Run, attempt: Attempt) -> float | None:
    """Start what isn't started, then move on when training has begun."""
    waiting = set(attempt.placements.filter(started_at=None).values_list("rank", flat=True))
    members = finish.prepared(attempt)
    if waiting:
        streams.open_for_attempt(attempt, members)
        _start(attempt, [m for m in members if m.rank in waiting])
    if attempt.world_size:
        _check_world(attempt, members)
        lifecycle.move(run, RunState.RUNNING, actor="worker", cause=f"{attempt.world_size} ranks have begun")
        return 0.0
    if attempt.placements.filter(exit__isnull=False).exists():
        return watch.look(run, attempt)
    if timezone.now() > _since(attempt) + LIMIT:
        raise End(Reason.LAUNCH, f"training did not begin within {LIMIT}")
    watch.ask_the_silent(attempt)
    lost.give_up(attempt)
    return LOOK_SECONDS


def _start(attempt: Attempt, members: Sequence[Member]) -> None:
    """Start the supervisors, all at once: the first ranks wait for the others. Started twice, they start once."""

    async def one(member: Member, host: Host) -> Answer:
        return group.answer(member, await host.check(start_argv(member.slot, member.release, member.folder)))

    answers = group.on_each(members, one)
    for rank, answer in answers.items():
        if isinstance(answer, dict):
            Placement.objects.filter(attempt=attempt, rank=rank).update(started_at=timezone.now())
    for error in group.errors(answers):
        raise error


def _check_world(attempt: Attempt, members: Sequence[Member]) -> None:
    expected = sum(member.slot.processes for member in members)
    if attempt.world_size != expected:
        text = f"{attempt.world_size} ranks have begun and {expected} were asked for"
        raise End(Reason.LAUNCH, text)


def _since(attempt: Attempt) -> datetime:
    times = attempt.placements.values_list("started_at", flat=True)
    return max((time for time in times if time), default=timezone.now())
