"""Rendezvous ports: of the runs that share a node, each has its own, also before anybody listens on it."""

from __future__ import annotations

from django.db import transaction
from django.db.models import QuerySet

from webapp.fleet.models import Node
from webapp.runs import lifecycle
from webapp.runs.models import Attempt


def keep(attempt: Attempt, port: int) -> bool:
    """Write down the port that was found free; False where another attempt on its nodes has it by now."""
    with transaction.atomic():
        lifecycle.lock(attempt.run_id)
        nodes = Node.objects.filter(placements__attempt=attempt).order_by("pk")
        # no_key: claims and placements refer to nodes when they commit, in an order of their own
        list(Node.objects.select_for_update(no_key=True).filter(pk__in=nodes.values("pk")).order_by("pk"))
        if _others(attempt).filter(port=port).exists():
            return False
        attempt.port = port
        attempt.save(update_fields=["port"])
    return True


def _others(attempt: Attempt) -> QuerySet[Attempt]:
    nodes = attempt.placements.values("node")
    living = Attempt.objects.filter(ended_at=None, port__gt=0, placements__node__in=nodes)
    return living.exclude(pk=attempt.pk).distinct()
