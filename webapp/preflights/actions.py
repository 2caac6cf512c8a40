"""Ask for a preflight; the workers make it."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import transaction

from training.spec.lint import Problem, Refused
from webapp import dispatch
from webapp.fleet.models import Cluster, Node

from .checks import CHECKS
from .models import Cell, Preflight

KEPT = 30  # preflights of a cluster that people asked for; those of launches stay with their runs


def ask(cluster: Cluster, actor: str) -> Preflight:
    """Return a new preflight of the nodes of `cluster`, or the one that is under way. Raises Refused without a node."""
    with transaction.atomic():
        Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)  # two clicks ask once
        under_way = cluster.preflights.filter(ended_at=None, attempt=None).first()
        if under_way:
            return under_way
        nodes = list(cluster.nodes.filter(removed_at=None).order_by("name"))
        if not nodes:
            raise Refused([Problem("cluster", "it has no node yet", "Add a node to it first.")])
        made = make(cluster, nodes, actor)
        dispatch.preflight(made.pk)
    return made


def make(cluster: Cluster, nodes: Iterable[Node], actor: str) -> Preflight:
    """Make the rows of a preflight, every cell waiting."""
    made = Preflight.objects.create(cluster=cluster, asked_by=actor)
    Cell.objects.bulk_create(
        [Cell(preflight=made, node=node, check_name=check.slug) for check in CHECKS for node in nodes]
    )
    older = list(cluster.preflights.filter(attempt=None).values_list("pk", flat=True)[KEPT:])
    Preflight.objects.filter(pk__in=older).exclude(ended_at=None).delete()
    return made
