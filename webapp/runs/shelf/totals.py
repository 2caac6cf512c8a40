"""How much checkpoints take, by node and by run: largest first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from django.db.models import Count, F, Sum

from ..models import Checkpoint, CheckpointPart
from .places import of_all


@dataclass(frozen=True)
class Total:
    """`count` checkpoints take `bytes`; `key` is the run's id, 0 of a node."""

    name: str
    bytes: int
    count: int
    key: int = 0


@dataclass(frozen=True)
class Share:
    """What some checkpoints of one run take on one node."""

    node: str
    run: int
    run_name: str
    bytes: int
    checkpoints: int


@dataclass(frozen=True)
class Totals:
    """`shares`: of every node and run."""

    shares: list[Share]

    @classmethod
    def now(cls) -> Totals:
        return cls([*_written(), *_measured()])

    @property
    def bytes(self) -> int:
        return sum(share.bytes for share in self.shares)

    @property
    def nodes(self) -> list[Total]:
        return _summed(((share.node, 0), share) for share in self.shares)

    @property
    def runs(self) -> list[Total]:
        """One checkpoint counts on each of its nodes here, so the most that any node has is how many there are."""
        return _summed(((share.run_name, share.run), share) for share in self.shares)


def _summed(shares: Iterable[tuple[tuple[str, int], Share]]) -> list[Total]:
    taken: dict[tuple[str, int], int] = defaultdict(int)
    counts: dict[tuple[str, int], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for key, share in shares:
        taken[key] += share.bytes
        counts[key][share.node] += share.checkpoints
    found = [Total(key[0], taken[key], max(counts[key].values()), key[1]) for key in taken if taken[key]]
    return sorted(found, key=lambda total: (-total.bytes, total.name))


def _written() -> Iterator[Share]:
    """Yield what manifests said of those whose nodes were never asked, added up by the database."""
    node, run = "checkpoint__attempt__placements__node__name", "checkpoint__attempt__run"
    here = {"checkpoint__attempt__placements__rank": F("node_rank")}
    rows = CheckpointPart.objects.filter(checkpoint__deleted_at=None, checkpoint__copies=None, **here)
    grouped = rows.values(node, run, f"{run}__name").order_by(node, run)
    for row in grouped.annotate(taken=Sum("bytes"), count=Count("checkpoint", distinct=True)):
        yield Share(row[node], row[run], row[f"{run}__name"], row["taken"], row["count"])


def _measured() -> Iterator[Share]:
    asked = Checkpoint.objects.filter(deleted_at=None, copies__isnull=False).distinct().select_related("attempt__run")
    rows = {row.pk: row for row in asked}
    for key, places in of_all(list(rows.values())).items():
        run = rows[key].attempt.run
        for place in places:
            yield Share(place.name, run.pk, run.name, place.bytes, int(place.bytes > 0))
