"""Preflights: look at the nodes of a cluster, and at what lies between them. Anyone with an account may."""

from __future__ import annotations

from django.db.models import QuerySet
from django.http import HttpRequest
from ninja import Router
from ninja.responses import Status

from webapp.fleet.models import Cluster
from webapp.preflights import actions
from webapp.preflights.models import Preflight

from .finders import actor_of, by_id
from .paging import Cursor, Limit, Page, newest_first
from .shapes.preflights import PreflightOut

router = Router(tags=["preflights"])
OF_CLUSTER = "/clusters/{int:cluster_id}/preflights"


@router.post(OF_CLUSTER, response={202: PreflightOut}, operation_id="create_preflight")
def create_preflight(request: HttpRequest, cluster_id: int) -> Status[PreflightOut]:
    """Have all nodes of a cluster checked. While one is under way it is that one. Its cells fill in as they come."""
    cluster = by_id(Cluster.objects.all(), cluster_id, "cluster")
    made = actions.ask(cluster, actor_of(request))
    return Status(202, PreflightOut.of(_rows().get(pk=made.pk), request))


@router.get(OF_CLUSTER, response=Page[PreflightOut], operation_id="list_preflights")
def list_preflights(
    request: HttpRequest, cluster_id: int, cursor: Cursor = "", limit: Limit = 10
) -> Page[PreflightOut]:
    """List a cluster's preflights, those before launches too, newest first."""
    cluster = by_id(Cluster.objects.all(), cluster_id, "cluster")
    found, after = newest_first(_rows().filter(cluster=cluster), cursor, limit)
    return Page[PreflightOut](items=[PreflightOut.of(row, request) for row in found], next=after)


@router.get("/preflights/{int:preflight_id}", response=PreflightOut, operation_id="read_preflight")
def read_preflight(request: HttpRequest, preflight_id: int) -> PreflightOut:
    """Read a preflight, as far as it has come."""
    return PreflightOut.of(by_id(_rows(), preflight_id, "preflight"), request)


def _rows() -> QuerySet[Preflight]:
    return Preflight.objects.select_related("cluster", "attempt").prefetch_related("cells__node")
