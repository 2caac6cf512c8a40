"""On which disks a checkpoint lies: the nodes that wrote it, and those to which all of it was brought."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..models import Attempt, Checkpoint, CheckpointCopy, CheckpointPart, Export, Placement

SHARED, PRIVATE = "shared disk", "private disks"


@dataclass
class Place:
    """A checkpoint's folder on one node. `ranks`: of the nodes' parts, those written here; `written`: their bytes.

    `brought`: a resume or an export may have brought the other parts here, which private disks need.
    """

    node_id: int
    name: str
    slot: dict[str, Any]
    ranks: list[int] = field(default_factory=list)
    written: int = 0
    brought: bool = False
    copy: CheckpointCopy | None = None
    shared: bool = False

    @property
    def scratch(self) -> str:
        return str(self.slot["scratch"])

    @property
    def bytes(self) -> int:
        """What lies there: as the node measured it, else as the manifests said when they were written.

        Of a disk that several nodes see, each has what it wrote: together they have what is there.
        """
        if self.gone:
            return 0
        known = self.copy.bytes if self.copy else None
        return self.written if known is None or self.shared else known

    @property
    def measured(self) -> bool:
        return self.copy is not None and self.copy.bytes is not None

    @property
    def gone(self) -> bool:
        return self.copy is not None and self.copy.deleted_at is not None

    @property
    def problem(self) -> str:
        return self.copy.problem if self.copy else ""


def places(checkpoint: Checkpoint) -> list[Place]:
    """Return where the checkpoint lies, its writers first."""
    return of_all([checkpoint])[checkpoint.pk]


def of_all(checkpoints: Sequence[Checkpoint]) -> dict[int, list[Place]]:
    """Return {checkpoint id: its places}, in a few queries whatever their number."""
    found: dict[int, dict[tuple[int, str], Place]] = {row.pk: {} for row in checkpoints}
    written = _written(checkpoints)
    by_attempt = _placements(row.attempt_id for row in checkpoints)
    for row in checkpoints:
        for placement in by_attempt[row.attempt_id]:
            place = _at(found[row.pk], placement.node_id, placement.node.name, placement.slot)
            place.ranks.append(placement.rank)
            place.written += written.get((row.pk, placement.rank), 0)
    _brought(found)
    for copy in CheckpointCopy.objects.filter(checkpoint__in=found).select_related("node"):
        _at(found[copy.checkpoint_id], copy.node_id, copy.node.name, copy.slot).copy = copy
    for row in checkpoints:
        _mark_shared(row, list(found[row.pk].values()))
    return {key: list(places.values()) for key, places in found.items()}


def _mark_shared(checkpoint: Checkpoint, places: list[Place]) -> None:
    if disk(places, checkpoint.nodes) == SHARED:
        for place in places:
            place.shared = True


def _at(places: dict[tuple[int, str], Place], node_id: int, name: str, slot: dict[str, Any]) -> Place:
    return places.setdefault((node_id, str(slot["scratch"])), Place(node_id, name, slot))


def _written(checkpoints: Sequence[Checkpoint]) -> dict[tuple[int, int], int]:
    parts = CheckpointPart.objects.filter(checkpoint__in=checkpoints)
    return {(part.checkpoint_id, part.node_rank): part.bytes for part in parts}


def _placements(attempts: Iterable[int]) -> dict[int, list[Placement]]:
    found: dict[int, list[Placement]] = defaultdict(list)
    for row in Placement.objects.filter(attempt__in=set(attempts)).select_related("node").order_by("rank"):
        found[row.attempt_id].append(row)
    return found


def _brought(found: dict[int, dict[tuple[int, str], Place]]) -> None:
    """A resume and an export on private disks bring all parts to their nodes, where they stay."""
    resumed = dict(Attempt.objects.filter(resume_from__in=found).values_list("pk", "resume_from"))
    for attempt, rows in _placements(resumed).items():
        for row in rows:
            _at(found[resumed[attempt]], row.node_id, row.node.name, row.slot).brought = True
    for export in Export.objects.filter(checkpoint__in=found, waits=False).exclude(node=None).select_related("node"):
        if export.node is not None and export.slot:
            _at(found[export.checkpoint_id], export.node.pk, export.node.name, export.slot).brought = True


def disk(places: Sequence[Place], nodes: int) -> str:
    """Return whether the nodes that wrote it see one disk, as far as their answers tell; empty where they don't."""
    writers = [place for place in places if place.ranks]
    told = [(place, set(place.copy.parts)) for place in writers if place.copy and place.copy.parts]
    if nodes < 2 or len(told) < len(writers):
        return ""
    if any(parts > set(place.ranks) and not place.brought for place, parts in told):
        return SHARED
    return PRIVATE if all(parts == set(place.ranks) for place, parts in told) else ""
