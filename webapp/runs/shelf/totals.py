"""How much checkpoints take, by node and by run: largest first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from django.db.models import Count, F, Sum

from ..models import Checkpoint, CheckpointPart, Run
from .places import of_all


@dataclass(frozen=True)
class Total:
    """`count` checkpoints take `bytes`; `key` is the run's id, 0 of a node."""

    name: str
    bytes: int
    count: int
    key: int = 0


def by_run(limit: int = 10) -> list[Total]:
    """Return the runs whose checkpoints take the most, as their manifests said."""
    rows = Run.objects.filter(attempts__checkpoints__deleted_at=None).annotate(
        stored=Sum("attempts__checkpoints__parts__bytes"), saved=Count("attempts__checkpoints", distinct=True)
    )
    found = rows.filter(stored__gt=0).order_by("-stored", "-pk")[:limit]
    return [Total(run.name, run.stored, run.saved, run.pk) for run in found]


def by_node() -> list[Total]:
    """Return each node with what lies there: as it measured it where it was asked, else as manifests said."""
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for name, taken, count in _written():
        sums[name] = [taken, count]
    for places in of_all(list(Checkpoint.objects.filter(deleted_at=None, copies__isnull=False).distinct())).values():
        for place in places:
            sums[place.name][0] += place.bytes
            sums[place.name][1] += bool(place.bytes)
    found = [Total(name, taken, count) for name, (taken, count) in sums.items() if count]
    return sorted(found, key=lambda total: (-total.bytes, total.name))


def _written() -> Iterator[tuple[str, int, int]]:
    """Yield (node, bytes, checkpoints) of those whose nodes were never asked, added up by the database."""
    node = "checkpoint__attempt__placements__node__name"
    here = {"checkpoint__attempt__placements__rank": F("node_rank")}
    rows = CheckpointPart.objects.filter(checkpoint__deleted_at=None, checkpoint__copies=None, **here).values(node)
    for row in rows.annotate(taken=Sum("bytes"), count=Count("checkpoint", distinct=True)).order_by(node):
        yield row[node], row["taken"], row["count"]
