"""The end of a run: every node proven empty and read to the end, then the verdict, in one move."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from training.spec.faults import SENTENCES, Reason
from training.spec.lint import Refused
from webapp.fleet.ssh import Host
from webapp.runs import actions, journal, lifecycle, reach
from webapp.runs.models import Attempt, Placement, Run, Stream
from webapp.runs.states import RunState

from .. import group
from ..follow import streams
from ..group import Answer, Member
from . import clocks, outcome, proof
from .outcome import Exit, Verdict
from .settle import Settled, settle

SOON = 1.0
RETRY_SECONDS = 5.0
PATIENCE = timedelta(minutes=2)  # for a node that can't be reached, or emptied, when the others have ended
CLEAR_FOR = timedelta(days=1)  # how long an ended run's unreachable nodes are tried
KILL_SECONDS = 180.0


def prepared(attempt: Attempt) -> list[Member]:
    """Return the nodes on which something may run: nothing is started before `prepared_at` is written."""
    rows = attempt.placements.exclude(prepared_at=None).select_related("node__identity")
    return [group.of_placement(attempt, row) for row in rows]


def exits(attempt: Attempt) -> list[Exit]:
    """Return what the nodes that have ended said, with their clocks set right."""
    rows = attempt.placements.filter(exit__isnull=False)
    return [outcome.read(p.slot["name"], p.rank, p.exit or {}, clocks.lead_of(attempt, p.rank)) for p in rows]


def kill(members: Sequence[Member]) -> None:
    """End the job at once on every node that can be reached."""

    async def one(member: Member, host: Host) -> Answer:
        return await group.training(member, host, "signal", str(member.folder.path), "kill", seconds=KILL_SECONDS)

    group.on_each(members, one)


def conclude(run: Run, attempt: Attempt, judge: Callable[[Sequence[Exit]], Verdict], since: datetime) -> float | None:
    """End the run as soon as nothing of it is left; return when to look again, None where it has ended.

    `since`: from when on a node that can't be reached, or can't be emptied, is waited for.
    """
    members, waits = prepared(attempt), timezone.now() < since + PATIENCE
    settled = _ask(attempt, members)
    if settled.alive:
        kill([member for member in members if member.rank in settled.alive])
        if waits:
            return SOON
        settled = _ask(attempt, members)  # who looks for the first time so late has killed for the first time
    if settled.held and waits:
        return SOON
    if settled.errors and waits:
        return RETRY_SECONDS
    _give_up(attempt, settled.alive)
    found = exits(attempt)
    verdict = judge(found) if found else Verdict(RunState.FAILED, Reason.NODE_UNREACHABLE, "")
    _end(run, attempt, verdict, settled)
    return None


def _ask(attempt: Attempt, members: Sequence[Member]) -> Settled:
    settled = settle(members, streams.of_attempt(attempt))
    note(attempt, settled)
    return settled


def _give_up(attempt: Attempt, ranks: Collection[int]) -> None:
    """Write the end of nodes whose supervisor outlived KILL, and so wrote none."""
    found = made_up(Reason.SUPERVISOR_LOST, "what runs there outlived SIGKILL")
    attempt.placements.filter(rank__in=ranks, exit__isnull=True).update(exit=found)


def fail(run: Run, attempt: Attempt, reason: Reason, text: str, node: str = "") -> None:
    """End the run after a fault of the launch: whatever was started is ended where it can be reached.

    `node`: name of the one that kept it from starting, where it was one.
    """
    members = prepared(attempt)
    settled = Settled()
    if members:
        kill(members)
        settled = _ask(attempt, members)
    to_blame = next((p for p in attempt.placements.all() if node and p.slot["name"] == node), None)
    failure = outcome.at_launch(node, to_blame.rank, time.time()) if to_blame else {}
    _end(run, attempt, Verdict(RunState.FAILED, reason, text, failure), settled)


def unproven(nodes: Iterable[int] | None = None) -> QuerySet[Attempt]:
    """Return ended attempts of which processes may be left on some node, however long ago they ended.

    `nodes`: their ids, where only what is left there is of interest.
    """
    left = Q(placements__prepared_at__isnull=False, placements__proven_gone_at=None)
    if nodes is not None:
        left &= Q(placements__node__in=nodes)
    return Attempt.objects.filter(left, ended_at__isnull=False).distinct()


def to_clear(now: datetime) -> QuerySet[Attempt]:
    """Return those that are still looked after without being asked to."""
    return unproven().filter(ended_at__gt=now - CLEAR_FOR)


def clear(attempt: Attempt, nodes: Collection[int] | None = None) -> None:
    """After the end: end and read what could not be reached then. `nodes`: the ids of those to look at, if not all."""
    rows = attempt.placements.exclude(prepared_at=None).filter(proven_gone_at=None).select_related("node__identity")
    members = [group.of_placement(attempt, row) for row in rows if nodes is None or row.node_id in nodes]
    kill(members)
    _close_streams(attempt, _ask(attempt, members))


def note(attempt: Attempt, settled: Settled) -> None:
    """Write down what the nodes said."""
    now = timezone.now()
    for rank, status in settled.status.items():
        placement = Placement.objects.filter(attempt=attempt, rank=rank)
        if found := exit_of(status):
            # what a node's last line said is in its row already; the exit file has the evidence as well
            placement.filter(Q(exit__isnull=True) | ~Q(exit__has_any_keys=["evidence", "ours"])).update(exit=found)
        reach.show(attempt, Q(rank=rank), reachable=True)
    proof.keep(attempt, settled)
    for rank in settled.proven:
        Placement.objects.filter(attempt=attempt, rank=rank).update(proven_gone_at=now)
    for rank in settled.errors:
        reach.show(attempt, Q(rank=rank), reachable=False)


def exit_of(status: Answer) -> Answer | None:
    """Return the exit that a status tells of; one made up here where the supervisor left none."""
    if status.get("exit"):
        return dict(status["exit"])
    if status.get("state") != "lost":
        return None
    if status.get("rebooted"):
        return made_up(Reason.NODE_LOST, "the node was started anew, and what ran there is gone")
    return made_up(Reason.SUPERVISOR_LOST, SENTENCES[Reason.SUPERVISOR_LOST])


def made_up(reason: Reason, text: str, at: float | None = None) -> Answer:
    """Return the exit of a node that can't tell its own; `at`: seconds since the epoch by our clock, else now."""
    return {"reason": str(reason), "text": text, "at": time.time() if at is None else at, "ours": True}


def _end(run: Run, attempt: Attempt, verdict: Verdict, settled: Settled) -> None:
    text = ". ".join(filter(None, [verdict.text, *(f"Not proven empty: {doubt}" for doubt in settled.doubts())]))
    with transaction.atomic():
        if verdict.state == RunState.SUCCEEDED:
            _tell_of_training(run, attempt)
        moved = lifecycle.move(
            run, verdict.state, actor="worker", cause=text, attempt=attempt, reason=verdict.reason, text=text,
            failure=verdict.failure,
        )  # fmt: skip
        if not moved:
            return
        _close_streams(attempt, settled)
        if verdict.state == RunState.SUCCEEDED and run.parsed_recipe().export.at_end:
            _export(run, attempt)
        if verdict.state == RunState.FAILED:
            _restart(run, attempt)


def _restart(run: Run, attempt: Attempt) -> None:
    try:
        actions.restart(run, attempt)
    except Refused as refused:  # the run has failed, and stays so
        journal.warn(attempt, f"not restarted: {refused}")


def _tell_of_training(run: Run, attempt: Attempt) -> None:
    """A run so short that its end was seen before its beginning: its history has both."""
    attempt.refresh_from_db(fields=["world_size"])
    if run.state == RunState.STARTING and attempt.world_size:
        lifecycle.move(run, RunState.RUNNING, actor="worker", cause=f"{attempt.world_size} ranks had begun")


def _close_streams(attempt: Attempt, settled: Settled) -> None:
    nodes = attempt.placements.filter(rank__in=settled.gone).values("node")
    Stream.objects.filter(attempt=attempt, job_kind="", closed_at=None, node__in=nodes).update(
        closed_at=timezone.now()
    )  # fmt: skip


def _export(run: Run, attempt: Attempt) -> None:
    try:
        actions.export(run, run.owner)
    except Refused as refused:  # no checkpoint: the run has succeeded all the same
        journal.warn(attempt, str(refused))
