"""Why a node can't be removed: what is on it, and what nobody could reach any more."""

from __future__ import annotations

from collections.abc import Iterator

from training.spec.lint import Problem
from webapp.deliveries.models import Delivery, Destination
from webapp.runs.models import Checkpoint, Export, Placement

from . import holders
from .models import Node, Provision
from .models.provision import ENDED

WAIT = "Stop it or wait for its end; drain the node so that nothing new comes."


def in_use(node: Node) -> list[Problem]:
    """Return what goes on there, or needs the node's row to go on elsewhere."""
    return [Problem("node", reason, fix) for reason, fix in _in_use(node)]


def _in_use(node: Node) -> Iterator[tuple[str, str]]:
    for run in dict.fromkeys(claim.attempt.run for claim in holders.claims([node])[node.pk]):
        yield f"run #{run.pk} {run.name} holds it", WAIT
    for job in holders.jobs(node):
        yield f"{job} is {job.state} there", WAIT
    for delivery in Delivery.objects.filter(to_node=node).exclude(state__in=Delivery.STATES.ended):
        yield f"{delivery} is on its way there", WAIT
    unsettled = Placement.objects.filter(node=node, attempt__ended_at=None, attempt__claims=None)
    for placement in unsettled.select_related("attempt__run"):
        yield f"{placement.attempt} has not ended there", WAIT
    if Provision.objects.filter(node=node).exclude(state__in=ENDED).exists():
        yield "an interpreter is being made there", "Stop that, or wait for its end."
    for other in node.behind.filter(removed_at=None):
        yield f"{other} is reached through it", "Give that node another jump host first."
    for destination in Destination.objects.filter(node=node):
        yield f"the destination {destination} lies on it", "Delete or change the destination first."
    being_deleted = Checkpoint.objects.filter(copies__node=node, copies__deleted_at=None, deleted_at=None)
    if count := being_deleted.exclude(delete_asked_at=None).distinct().count():
        yield f"{count} checkpoints there are being deleted", "Wait until the node has done it."


def losses(node: Node) -> list[str]:
    """Return what lies there and could no longer be resumed from, exported or downloaded: counts, in words."""
    checkpoints = Checkpoint.objects.usable().filter(attempt__placements__node=node).distinct().count()
    exports = Export.objects.filter(node=node, state=Export.STATES.done).count()
    found = [(checkpoints, "complete checkpoint"), (exports, "export")]
    return [f"{count} {what}{'' if count == 1 else 's'}" for count, what in found if count]
