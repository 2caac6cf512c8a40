"""What rows say of one cluster's queue: its nodes, who holds them, who waits in which order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.db.models import Max, Q
from django.utils import timezone

from training.spec.lint import Refused
from training.spec.plan import NodeSlot
from webapp.fleet.models import Claim, Cluster, Node

from ..models import Attempt, Pause, Placement, Run
from ..states import RunState
from . import words
from .plan import Ask, Gpus, Holder, Pool, Seat, Table, Verdict, pool
from .wish import Wish


@dataclass(frozen=True)
class Board:
    """A cluster's queue at one moment. `waiting`: runs in their order, each with a verdict.

    `promised`: {(node id, GPU that is free): the run that it is kept for}.
    """

    seats: list[Seat]
    waiting: list[Run]
    verdicts: dict[int, Verdict]
    promised: dict[tuple[int, int], int]


def board(cluster_id: int) -> Board:
    seats, waiting = seats_of(cluster_id), waiting_runs(cluster_id)
    table = Table(seats)
    verdicts = {ask.run: table.look(ask) for ask in _asks(waiting, _paused(cluster_id))}
    return Board(seats, waiting, verdicts, table.promised)


def pauses(cluster_id: int) -> list[Pause]:
    """Return what holds the cluster's queue: a pause of all queues, one of its own, both, or nothing."""
    rows = Pause.objects.filter(Q(cluster=None) | Q(cluster=cluster_id), ended_at=None)
    return list(rows.select_related("cluster").order_by("pk"))


def _paused(cluster_id: int) -> str:
    now = timezone.now()
    texts = [words.paused(p.cluster.name if p.cluster else "", p.by, p.at, p.why, now) for p in pauses(cluster_id)]
    return texts[0] if texts else ""


def seats_of(cluster_id: int) -> list[Seat]:
    """Return every node of the cluster, as it is now."""
    held: dict[int, dict[int, Holder]] = {}
    for claim in Claim.objects.filter(node__cluster=cluster_id).select_related("attempt"):
        held.setdefault(claim.node_id, {})[claim.gpu] = Holder(claim.attempt.run_id, claim.since)
    nodes = Node.objects.filter(cluster=cluster_id, removed_at=None).order_by("name")
    return [_seat(node, held.get(node.pk, {})) for node in nodes]


def _seat(node: Node, held: dict[int, Holder]) -> Seat:
    labels = frozenset(map(str, node.labels))
    return Seat(node.pk, node.name, node.processes, node.accelerator, labels, why_out(node), held)


def why_out(node: Node) -> str:
    """Return why no new run is placed on a node, as words behind its name; empty: it is."""
    if not node.host_key:
        return "has no confirmed host key"
    if not node.python:
        return "has no interpreter"
    if node.in_service:
        return ""
    by = f" by {node.drained_by}" if node.drained_by else ""
    return f"is drained{by}{f': {node.drained_why}' if node.drained_why else ''}"


def waiting_runs(cluster_id: int) -> list[Run]:
    """Return the queued runs in the order in which they come: by priority, then by when a person asked for each.

    A restart by the service itself keeps the place of the attempt that it repeats.
    """
    rows = Run.objects.filter(cluster=cluster_id, state=RunState.QUEUED)
    by_hand = Q(attempts__restart=0)
    rows = rows.annotate(asked=Max("attempts", filter=by_hand), since=Max("attempts__created_at", filter=by_hand))
    return list(rows.select_related("owner").order_by("-priority", "asked", "pk"))


def _asks(waiting: Sequence[Run], paused: str) -> list[Ask]:
    rows = Attempt.objects.filter(run__in=waiting, ended_at=None).order_by("number")
    newest = {row.run_id: row for row in rows.prefetch_related("resume_from__attempt__placements")}
    return [_ask(run, newest.get(run.pk), paused) for run in waiting]


def _ask(run: Run, attempt: Attempt | None, paused: str) -> Ask:
    rests, source = None, None
    if attempt:
        source = attempt.resume_from
        rests = attempt.not_before if attempt.not_before and attempt.not_before > timezone.now() else None
    prefer = frozenset(place.node_id for place in source.attempt.placements.all()) if source else frozenset()
    avoid = failed_nodes(run, attempt) if attempt else frozenset()
    return Ask(run.pk, run.wished(), paused, rests, prefer, avoid)


def failed_nodes(run: Run, attempt: Attempt) -> frozenset[int]:
    """Return the nodes that failed first in the attempts of which this is a restart, where its recipe minds."""
    if not attempt.restart or not run.parsed_recipe().limits.spare:
        return frozenset()
    since = attempt.number - attempt.restart
    before = run.attempts.filter(number__gte=since, number__lt=attempt.number).exclude(failure={})
    first = Q(pk__in=[])
    for row in before:
        first |= Q(attempt=row, rank=row.failure["node_rank"])
    return frozenset(Placement.objects.filter(first).values_list("node", flat=True))


def wanted(cluster: Cluster, wish: Wish) -> Pool:
    """Return where a wish could be met, all nodes free; raise Refused where it can't."""
    seats = seats_of(cluster.pk)
    found = pool(wish, seats)
    if problems := words.problems(wish, found, [seat.name for seat in seats]):
        raise Refused(problems)
    return found


def slots(cluster: Cluster, wish: Wish) -> list[NodeSlot]:
    """Return the launch slots that a wish would get if all nodes were free. Raises Refused."""
    found = wanted(cluster, wish)
    chosen = found.seats[: found.nodes]
    nodes = Node.objects.in_bulk([seat.key for seat in chosen])
    return [slot_of(nodes[seat.key], tuple(range(found.share(seat)))) for seat in chosen]


def slot_of(node: Node, gpus: Gpus) -> NodeSlot:
    """Return a node's place in a launch that has these of its GPUs."""
    return replace(node.slot(), processes=len(gpus), gpus=gpus)
