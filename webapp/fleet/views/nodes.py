"""Nodes: are my machines ready?"""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from webapp.dispatch import check_node

from ..cards import STATES, Card, cards
from ..models import Cluster, Identity, Node

FILTERS = ("cluster", "label", "state")


@never_cache
@require_GET
def nodes(request: HttpRequest) -> HttpResponse:
    """Show the nodes by cluster, all or those of `cluster`, with `label`, in `state`."""
    return render(request, "fleet/nodes.html", _context(request))


@never_cache
@require_GET
def some_cards(request: HttpRequest) -> HttpResponse:
    """Answer the cards alone: the page asks again every few seconds."""
    return render(request, "fleet/cards.html", _context(request))


def _context(request: HttpRequest) -> dict[str, Any]:
    wanted = {name: request.GET.get(name, "")[:100] for name in FILTERS}
    wanted["state"] = wanted["state"] if wanted["state"] in STATES else ""
    rows = cards(Node.objects.select_related("cluster", "identity", "jump"))
    return {
        "clusters": _by_cluster([card for card in rows if _fits(card, wanted)], filtered=any(wanted.values())),
        "identities": Identity.objects.exists(),
        "wanted": wanted,
        "filtered": any(wanted.values()),
        "query": request.GET.urlencode(),
        "states": STATES,
        "all_clusters": Cluster.objects.values_list("name", flat=True),
        "labels": sorted({label for card in rows for label in card.node.labels if not card.node.removed_at}),
    }


def _fits(card: Card, wanted: dict[str, str]) -> bool:
    return (
        card.is_in(wanted["state"])
        and wanted["cluster"] in ("", card.node.cluster.name)
        and (not wanted["label"] or wanted["label"] in card.node.labels)
    )


def _by_cluster(found: list[Card], *, filtered: bool) -> list[tuple[Cluster, list[Card]]]:
    """A cluster without a node is shown where nothing was asked for."""
    pairs = [(each, [card for card in found if card.node.cluster_id == each.pk]) for each in Cluster.objects.all()]
    return [(cluster, cards) for cluster, cards in pairs if cards or not filtered]


@require_POST
def check(request: HttpRequest, node_id: int) -> HttpResponse:
    node = get_object_or_404(Node, pk=node_id)
    check_node(node.pk)
    messages.info(request, f"{node} is being checked; what is shown changes by itself in a few seconds.")
    return redirect(node)
