"""The rows of a node that is followed: how to reach it, and what its runs are told of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Q

from training.spec.plan import NodeSlot
from webapp.fleet.models import Node
from webapp.fleet.ssh import Endpoint
from webapp.runs import journal, reach
from webapp.runs.models import Attempt


@dataclass(frozen=True)
class Target:
    """Where to connect, and with what to run what we put there."""

    endpoint: Endpoint
    slot: NodeSlot

    @classmethod
    def of(cls, node: int) -> Target:
        row = Node.objects.select_related("identity").get(pk=node)
        return cls(Endpoint.of(row), row.slot())

    @property
    def name(self) -> str:
        return self.slot.name


def show(node: int, attempts: Sequence[int], gone: bool, why: str) -> None:
    """Show the node's placements in these attempts as gone or back; where it answers, but can't work, say `why`."""
    for attempt in Attempt.objects.filter(pk__in=attempts).order_by("run"):
        with transaction.atomic():
            reach.show(attempt, Q(node=node), reachable=not gone)
            if gone and why:
                journal.warn(attempt, f"what this node writes can't be read: {why}")
