"""queued: take the GPUs that the queue's rule gives to the run, all of them or none."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import IntegrityError, transaction
from django.utils import timezone

from training.spec.faults import Reason
from training.spec.lint import Refused
from training.spec.plan import check_nodes
from webapp.fleet.models import Claim, Cluster, Node
from webapp.runs import actions, lifecycle
from webapp.runs.models import Attempt, Run
from webapp.runs.queue.board import Board, board, slot_of, why_out
from webapp.runs.queue.plan import Gpus, Placed
from webapp.runs.states import RunState
from webapp.trials.queue import give_way

from ..end.ending import End

WAIT_SECONDS, LONGEST_WAIT = 10.0, 60.0


def claim(run: Run, attempt: Attempt) -> float:
    """Move on with the GPUs, or wait for whoever has them or comes first."""
    if attempt.not_before and (left := (attempt.not_before - timezone.now()).total_seconds()) > 0:
        return left
    found = board(run.cluster_id)
    if not isinstance(found.verdicts.get(run.pk), Placed):  # most looks end here, and lock nothing
        return _wait(found, run)
    try:
        with transaction.atomic():
            return _take(run, attempt)
    except IntegrityError:  # a node that changed its cluster meanwhile
        return WAIT_SECONDS


def _wait(found: Board, run: Run) -> float:
    """Return when to look again: who can start is called (webapp.runs.queue.wake), so this is for what gets lost.

    The further behind the later, or hundreds that wait would keep a worker busy with looking.
    """
    ahead = [other.pk for other in found.waiting].index(run.pk) if run.pk in found.verdicts else 0
    return min(max(WAIT_SECONDS, ahead), LONGEST_WAIT)


def _given(run: Run) -> dict[int, Gpus] | None:
    """Return {node id: GPUs} that are the run's, in the order of its ranks; None while it has to wait."""
    verdict = board(run.cluster_id).verdicts.get(run.pk)
    return verdict.gpus if isinstance(verdict, Placed) else None


def _take(run: Run, attempt: Attempt) -> float:
    """One at a time in a cluster, so that each sees what the one before it took: so the rule is kept too."""
    lifecycle.lock(run.pk)
    run.refresh_from_db()
    if run.attempt != attempt:  # one that waits can be stopped, and begun again, without its lease
        return WAIT_SECONDS
    Cluster.objects.select_for_update(no_key=True).get(pk=run.cluster_id)
    given = _given(run)
    nodes = _held(run, given) if given else []
    if not given or len(nodes) < len(given):
        return WAIT_SECONDS
    try:
        check_nodes(run.parsed_recipe(), [slot_of(node, given[node.pk]) for node in nodes])
    except Refused as refused:
        raise End(Reason.CONFIGURATION, str(refused)) from refused
    Claim.objects.bulk_create([Claim(node=n, gpu=gpu, attempt=attempt) for n in nodes for gpu in given[n.pk]])
    actions.place(attempt, nodes, given)
    cause = f"took {', '.join(_named(node, given[node.pk]) for node in nodes)}"
    if not lifecycle.move(run, RunState.PREPARING, actor="worker", cause=cause):
        transaction.set_rollback(True)
        return 0.0
    give_way(nodes)
    return 0.0


def _held(run: Run, given: Iterable[int]) -> list[Node]:
    """Return the nodes in the order of `given`, unchanged until this is over.

    But for those that were drained, removed or moved to another cluster since the plan was made.
    """
    rows = Node.objects.select_for_update(no_key=True).filter(cluster=run.cluster_id, removed_at=None).order_by("pk")
    found = {node.pk: node for node in rows.filter(pk__in=given) if not why_out(node)}
    return [found[key] for key in given if key in found]


def _named(node: Node, gpus: Gpus) -> str:
    if len(gpus) >= node.processes:
        return node.name
    what = "GPU" if node.accelerator else "rank"
    return f"{what} {', '.join(map(str, gpus))} of {node.name}"
