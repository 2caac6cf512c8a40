"""queued: take all nodes of the cluster, or none."""

from __future__ import annotations

from django.db import IntegrityError, transaction
from django.utils import timezone

from training.spec.faults import Reason
from training.spec.lint import Refused
from training.spec.plan import check_nodes
from webapp.fleet.models import Claim, Node
from webapp.runs import actions, lifecycle
from webapp.runs.models import Attempt, Run
from webapp.runs.states import RunState
from webapp.runs.waiting import ahead_of
from webapp.trials.queue import give_way

from ..end.ending import End

WAIT_SECONDS = 10.0


def claim(run: Run, attempt: Attempt) -> float:
    """Move on with the nodes, or wait for whoever has them or was here first."""
    if attempt.not_before and (left := (attempt.not_before - timezone.now()).total_seconds()) > 0:
        return left
    nodes = list(run.cluster.nodes.filter(in_service=True).exclude(host_key="").order_by("name"))
    try:
        check_nodes(run.parsed_recipe(), [node.slot() for node in nodes])
    except Refused as refused:
        raise End(Reason.CONFIGURATION, str(refused)) from refused
    if ahead_of(run).exists():
        return WAIT_SECONDS
    try:
        with transaction.atomic():
            return _take(run, attempt, nodes)
    except IntegrityError:
        return WAIT_SECONDS


def _take(run: Run, attempt: Attempt, nodes: list[Node]) -> float:
    Claim.objects.bulk_create([Claim(node=node, attempt=attempt) for node in nodes])
    actions.place(attempt, nodes)
    cause = f"took {', '.join(node.name for node in nodes)}"
    if not lifecycle.move(run, RunState.PREPARING, actor="worker", cause=cause):
        transaction.set_rollback(True)
    give_way(nodes)
    return 0.0
