"""A page of the list of runs: its keys first, out of an index alone, then the few rows that are shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.core.paginator import Page, Paginator
from django.db.models import Exists, OuterRef

from webapp.datasets.models import Dataset
from webapp.fleet.models import Node

from .curves import Curve, loss_curves
from .finding import Wanted, in_order, matching, ranked
from .models import ModelSource, Run, Tag

PAGE = 25
CHOICES = 200  # of a filter, at most
WIDE = ("recipe", "wish", "notes")  # what no row of a list shows


@dataclass(frozen=True)
class Row:
    """A run of the list. `rank` 0: it needs someone."""

    run: Run
    rank: int
    curve: Curve
    nodes: int


def page(wanted: Wanted, sort: str, number: str) -> tuple[Page[int], list[Row]]:
    """Return a page of keys, and its rows."""
    keys = in_order(matching(wanted), sort).values_list("pk", flat=True)
    found = Paginator(keys, PAGE).get_page(number)
    return found, rows_of(list(found.object_list))


def rows_of(keys: Sequence[int]) -> list[Row]:
    """Return the rows of runs in the order of their keys; one that is gone meanwhile is left out."""
    runs = ranked(Run.objects.filter(pk__in=keys)).select_related("owner", "cluster", "model", "dataset__dataset")
    found = {run.pk: run for run in runs.prefetch_related("tags").defer(*WIDE)}
    shown = [found[key] for key in keys if key in found]
    curves = loss_curves(shown)
    nodes = Counter(
        Node.objects.filter(cluster__in={run.cluster_id for run in shown}).values_list("cluster", flat=True)
    )
    return [Row(run, run.rank, curves.get(run.pk, Curve()), nodes[run.cluster_id]) for run in shown]


def choices() -> dict[str, list[str]]:
    """Return what runs can be filtered by: owners, models, data sets and tags that some run has."""
    return {
        "owners": _used(User.objects.order_by("username"), "owner", "username"),
        "models": _used(ModelSource.objects.order_by("name"), "model", "name"),
        "datasets": _used(Dataset.objects.order_by("name"), "dataset__dataset", "name"),
        "tags": list(Tag.objects.order_by("name").values_list("name", flat=True).distinct()[:CHOICES]),
    }


def _used(rows: object, column: str, name: str) -> list[str]:
    used = Exists(Run.objects.filter(**{column: OuterRef("pk")}))
    return list(rows.filter(used).values_list(name, flat=True)[:CHOICES])  # type: ignore[attr-defined]
