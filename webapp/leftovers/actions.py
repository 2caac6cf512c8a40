"""Look for leftovers, and end one."""

from __future__ import annotations

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from training.spec.lint import Problem, Refused
from webapp import dispatch
from webapp.fleet import changes
from webapp.fleet.models import Node

from .models import Leftover, NodeLook


def nodes() -> QuerySet[Node]:
    """Return the nodes that are asked: those whose key is pinned and that are not removed."""
    return Node.objects.known()


def there() -> QuerySet[Leftover]:
    """Return what is there as far as is known."""
    return Leftover.objects.filter(ended_at=None, node__removed_at=None)


@transaction.atomic
def look() -> int:
    """Have every node asked now; return how many that are."""
    found = list(nodes())
    for node in found:
        NodeLook.objects.get_or_create(node=node)
        dispatch.look_at_node(node.pk)
    NodeLook.objects.filter(node__in=found).update(due_at=timezone.now())
    return len(found)


@transaction.atomic
def end(leftover: Leftover, actor: str) -> None:
    """Have it ended on its node, at once and by its folder alone. Asked twice, it is ended once. Raises Refused."""
    row = Leftover.objects.select_for_update().get(pk=leftover.pk)
    if row.ended_at:
        raise Refused([Problem("leftover", "it has ended already", "There is nothing left to do.")])
    if row.ending:
        return
    row.end_asked_at = row.end_due_at = timezone.now()
    row.end_asked_by, row.problem = actor[:150], ""
    row.save(update_fields=["end_asked_at", "end_due_at", "end_asked_by", "problem"])
    changes.record(row.node, actor, f"asked to end what was left in {row.folder}")
    dispatch.end_leftover(row.pk)
