"""Clusters as a person chooses among them."""

from __future__ import annotations

from django.db.models import Prefetch, QuerySet

from .models import Cluster, Node


def with_nodes() -> QuerySet[Cluster]:
    """Return the clusters, each with the nodes that are there; those that are removed are none of them."""
    return Cluster.objects.prefetch_related(Prefetch("nodes", Node.objects.filter(removed_at=None)))
