"""Begin an attempt: the first, one that a person asks for, one by itself after a failure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from training.spec.faults import WORTH_RETRYING, Reason
from training.spec.lint import Problem, Refused
from webapp.dispatch import advance_run
from webapp.fleet.models import Node

from .. import lifecycle
from ..models import Attempt, Checkpoint, Placement, Run
from ..queue.board import slot_of
from ..queue.plan import Gpus
from ..states import RunState
from .choice import check_resumable, newest_checkpoint, torn_ones
from .labels import unarchive

OURSELVES = "Shardboard"  # the actor of what nobody asked for
FIRST_DELAY, LONGEST_DELAY = timedelta(seconds=15), timedelta(minutes=15)  # before a restart


@transaction.atomic
def launch(run: Run, actor: str) -> Attempt:
    """Queue a draft; return its first attempt."""
    if run.state != RunState.DRAFT:
        raise Refused([Problem("state", f"the run is {run.state}, not a draft", "Clone it to run it again.")])
    return _queue(run, actor, "launched")


@transaction.atomic
def resume(run: Run, actor: str, checkpoint: Checkpoint | None = None) -> Attempt:
    """Queue a stopped or failed run again, from `checkpoint` or its newest complete one."""
    if not run.can_resume:
        raise Refused([Problem("state", f"the run is {run.state}", "Only a stopped or failed run can be resumed.")])
    skipped = "" if checkpoint else torn_ones(run)
    checkpoint = checkpoint or newest_checkpoint(run)
    if checkpoint is None:
        raise Refused([Problem("checkpoint", "the run has no complete checkpoint", "Clone the run to start afresh.")])
    check_resumable(run, checkpoint)
    return _queue(run, actor, f"resumed from step {checkpoint.step}{skipped}", checkpoint)


@transaction.atomic
def restart(run: Run, failed: Attempt) -> Attempt | None:
    """Queue a failed run again by itself, from its newest complete checkpoint or afresh; None where it may not.

    `failed` is the attempt that has just ended; called again for the same one, nothing happens. The run's recipe
    says how often in a row, training.spec.faults after which reasons. Raises Refused where nodes are missing.
    """
    run = Run.objects.select_for_update().get(pk=run.pk)
    limit, number = run.parsed_recipe().limits.restarts, failed.restart + 1
    if run.state != RunState.FAILED or run.attempt != failed or number > limit or failed.stop_requested_at:
        return None
    if run.reason not in WORTH_RETRYING:
        return None
    checkpoint = newest_checkpoint(run)
    if checkpoint:
        check_resumable(run, checkpoint)
    start = f"from step {checkpoint.step}" if checkpoint else "afresh, there is no complete checkpoint"
    delay = restart_delay(number)
    cause = f"restarted {number} of {limit} {start}{torn_ones(run)}: {WORTH_RETRYING[Reason(run.reason)]}"
    return _queue(run, OURSELVES, cause, checkpoint, restart=number, not_before=timezone.now() + delay)


def restart_delay(number: int) -> timedelta:
    """Return how long restart `number` waits: a node that starts anew takes minutes, and tries are few."""
    return min(FIRST_DELAY * 4 ** min(number - 1, 10), LONGEST_DELAY)


def _queue(run: Run, actor: str, cause: str, checkpoint: Checkpoint | None = None, **how: Any) -> Attempt:
    Run.objects.select_for_update().get(pk=run.pk)  # of two at once, the second counts the first's attempt
    attempt = Attempt.objects.create(run=run, number=run.attempts.count() + 1, resume_from=checkpoint, **how)
    if not lifecycle.move(run, RunState.QUEUED, actor=actor, cause=cause, attempt=attempt):
        raise Refused([Problem("state", f"the run has become {run.state} meanwhile", "Look again.")])
    unarchive(run)  # what goes on is to be seen
    advance_run(run.pk)
    return attempt


def place(attempt: Attempt, nodes: Sequence[Node], gpus: Mapping[int, Gpus] | None = None) -> list[Placement]:
    """Write down where `attempt` runs, as the nodes are now. `gpus`: {node id: those it has there}; None: all."""
    taken = {node.pk: slot_of(node, gpus[node.pk]) if gpus else node.slot() for node in nodes}
    return [
        Placement.objects.create(attempt=attempt, node=node, rank=rank, slot=vars(taken[node.pk]))
        for rank, node in enumerate(nodes)
    ]
