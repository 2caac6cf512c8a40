"""A page of the list of runs: its keys first, out of an index alone, then the few rows that are shown."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.core.paginator import Page, Paginator
from django.db import connection
from django.db.models import Exists, OuterRef

from webapp.datasets.models import Dataset
from webapp.fleet.models import Node

from .curves import Curve, loss_curves
from .finding import Wanted, in_order, matching
from .models import ModelSource, Run, Tag

PAGE = 25
CHOICES = 200  # of a filter, at most
# What a row shows: not the recipe, which is longer than all of it, and of the tables beside it little more than names.
NAMED = ("owner__username", "model__name", "cluster__name", "dataset__number", "dataset__dataset__name")
SHOWN = ("name", "state", "archived_at", "reason_text", "step", "total_steps", "created_at", "ended_at", *NAMED)
TAG_NAMES = """
    WITH RECURSIVE known(name) AS (
        SELECT min(name) FROM runs_tag
        UNION ALL
        SELECT (SELECT min(name) FROM runs_tag WHERE name > known.name) FROM known WHERE known.name IS NOT NULL
    )
    SELECT name FROM known WHERE name IS NOT NULL LIMIT %s
"""


@dataclass(frozen=True)
class Row:
    """A run of the list. `rank` 0: it needs someone."""

    run: Run
    rank: int
    curve: Curve
    nodes: int
    tags: list[str]


def page(wanted: Wanted, sort: str, number: str) -> tuple[Page[tuple[int, int]], list[Row]]:
    """Return a page of keys with their ranks, and its rows."""
    keys = in_order(matching(wanted), sort).values_list("pk", "rank")
    found = Paginator(keys, PAGE).get_page(number)
    return found, rows_of(dict(found.object_list))


def rows_of(ranks: Mapping[int, int]) -> list[Row]:
    """Return the rows of runs, by key with their rank, in this order; one that is gone meanwhile is left out."""
    runs = Run.objects.select_related("owner", "cluster", "model", "dataset__dataset").only(*SHOWN).in_bulk(ranks)
    curves, tags = loss_curves(runs), _tags(runs)
    nodes = Counter(
        Node.objects.filter(cluster__in={run.cluster_id for run in runs.values()}).values_list("cluster", flat=True)
    )
    shown = [(runs[key], rank) for key, rank in ranks.items() if key in runs]
    return [Row(run, rank, curves.get(run.pk, Curve()), nodes[run.cluster_id], tags[run.pk]) for run, rank in shown]


def _tags(runs: Collection[int]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = defaultdict(list)
    for run, name in Tag.objects.filter(run__in=runs).order_by("name").values_list("run", "name"):
        found[run].append(name)
    return found


def choices() -> dict[str, list[str]]:
    """Return what runs can be filtered by: owners, models, data sets and tags that some run has."""
    return {
        "owners": _used(User.objects.order_by("username"), "owner", "username"),
        "models": _used(ModelSource.objects.order_by("name"), "model", "name"),
        "datasets": _used(Dataset.objects.order_by("name"), "dataset__dataset", "name"),
        "tags": _tag_names(),
    }


def _tag_names() -> list[str]:
    """Return each tag once, from one to the next in the index: DISTINCT would go through all runs' tags."""
    with connection.cursor() as cursor:
        cursor.execute(TAG_NAMES, [CHOICES])
        return [name for (name,) in cursor.fetchall()]


def _used(rows: object, column: str, name: str) -> list[str]:
    used = Exists(Run.objects.filter(**{column: OuterRef("pk")}))
    return list(rows.filter(used).values_list(name, flat=True)[:CHOICES])  # type: ignore[attr-defined]
