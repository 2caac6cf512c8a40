"""Will the disks hold the checkpoints to come? Node by node: of a run at work, and of one that is yet to be made.

A checkpoint's bytes are those of the run's newest one, before that an estimate from the model's files as a node last
saw them; free bytes are what the run's samples said last, before there is a run what the node's check found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone

from training.spec.bytes_on_disk import Shape, checkpoint_bytes, node_share, trained
from training.spec.forecast import Course, Disk, Outlook, look_shared, outlook
from training.spec.plan import NodeSlot
from training.spec.recipe import Recipe
from training.spec.retention import judged
from webapp.fleet.models import Cluster

from .. import samples
from ..models import Attempt, Checkpoint, ModelSource, Placement, Run, Series
from ..queue.board import slots
from ..queue.wish import Wish
from ..states import ON_NODES
from ..windows import Wanted
from .fates import seen_of
from .places import SHARED, disk, places

BY_ITSELF = ("pinned", "held by")  # how the reasons begin that are not the rule's
LOOKED_AT = 8  # newest placements of a model that are asked for its shape


@dataclass(frozen=True)
class Room:
    """A node's outlook. `estimated`: there is no checkpoint yet to measure. `seen_at`: when its disk was looked at."""

    node: str
    outlook: Outlook
    estimated: bool
    seen_at: datetime | None = None

    @property
    def text(self) -> str:
        return f"{self.node}: {self.outlook.sentence}{'; its size is an estimate' if self.estimated else ''}"

    @property
    def tightness(self) -> tuple[bool, int, int]:
        """Sorts the node first that is full first, else the one with the least to spare."""
        found = self.outlook
        return found.fits, 0 if found.fits else found.full_at, found.free - found.need


def tightest(found: Sequence[Room]) -> Room | None:
    return min(found, key=lambda room: room.tightness, default=None)


def rooms(run: Run) -> list[Room]:
    """Return the outlook of each node of a run that is at work; none of what nothing is known of."""
    attempt = run.attempt
    if run.state not in ON_NODES or attempt is None or not run.total_steps:
        return []
    placed = list(attempt.placements.select_related("node").order_by("rank"))
    one = _one_disk([_checked(placement) for placement in placed])
    sizes, estimated = _sizes(run, placed, one=one)
    names = _names([placement.node.name for placement in placed], one=one)
    course, (there, beside), found = _course(run, attempt), _standing(run, attempt), []
    for name, placement in zip(names, placed, strict=False):
        free, size = _free(attempt, placement.rank), sizes.get(placement.node_id)
        if free is not None and size:
            now = Disk(free, size, there=there, beside=beside)
            seen = outlook(run.parsed_recipe().checkpoints, course, now)
            found.append(Room(name, seen, estimated))
    return found


def _sizes(run: Run, placed: Sequence[Placement], *, one: bool) -> tuple[dict[int, int], bool]:
    """Return {node id: bytes of a checkpoint there}, and whether that is an estimate."""
    newest = Checkpoint.objects.usable().filter(attempt__run=run).order_by("-attempt__number", "-step").first()
    if newest is not None:
        at = places(newest)
        whole = one or disk(at, newest.nodes) == SHARED
        return {place.node_id: newest.bytes if whole else place.written for place in at}, False
    slots = [placement.node_slot() for placement in placed]
    shares = _estimates(run.model, run.parsed_recipe(), slots, shared=one)
    return {placement.node_id: share for placement, share in zip(placed, shares, strict=False)}, True


def _course(run: Run, attempt: Attempt) -> Course:
    since = attempt.resume_from.step if attempt.resume_from else 0
    seconds = None
    if attempt.started_at and run.step > since:
        seconds = (timezone.now() - attempt.started_at).total_seconds() / (run.step - since)
    return Course(run.total_steps, run.step, since, seconds)


def _standing(run: Run, attempt: Attempt) -> tuple[int, int]:
    """Return how many complete ones the attempt has, and how many of them stay for a pin or a hold alone."""
    rows = list(Checkpoint.objects.usable().filter(attempt=attempt))
    verdicts = judged(seen_of(rows, run).values(), run.parsed_recipe().checkpoints)
    return len(rows), sum(all(reason.startswith(BY_ITSELF) for reason in verdict.reasons) for verdict in verdicts)


def _free(attempt: Attempt, rank: int) -> int | None:
    """Return the free bytes of the node's scratch disk as it said last."""
    name = f"node{rank}/disk_free"
    series = Series.objects.filter(attempt=attempt, name=name).first()
    last = samples.newest(Wanted.of(series)) if series else None
    return int(last) if isinstance(last, float) else None


def beforehand(model: ModelSource, recipe: Recipe, cluster: Cluster, wish: Wish, steps: int) -> list[Room]:
    """Return the outlook of each node of a run that is yet to be made, from the nodes' last checks."""
    wanted = slots(cluster, wish)
    nodes = list(cluster.nodes.filter(name__in=[slot.name for slot in wanted]).order_by("name"))
    one = _one_disk([node.facts for node in nodes])
    shares = _estimates(model, recipe, wanted, shared=one)
    names, found = _names([node.name for node in nodes], one=one), []
    for name, node, share in zip(names, nodes, shares, strict=False):
        if (free := node.facts.get("disk_free")) is not None:
            seen = outlook(recipe.checkpoints, Course(steps), Disk(int(free), share))
            found.append(Room(name, seen, True, node.checked_at))
    return found


def _estimates(model: ModelSource, recipe: Recipe, slots: Sequence[NodeSlot], *, shared: bool = False) -> list[int]:
    """Return the bytes of a checkpoint on each node; nothing where nobody has looked at the model's files yet."""
    shape = _shape(model)
    if shape is None:
        return []
    world = sum(slot.processes for slot in slots)
    whole = checkpoint_bytes(trained(shape, recipe), recipe, world)
    return [whole if shared else node_share(whole, slot.processes, world) for slot in slots]


def _shape(model: ModelSource) -> Shape | None:
    """Return what the model holds, as a node said at the newest launch with it."""
    rows = Placement.objects.filter(attempt__run__model=model).exclude(facts=None).order_by("-pk")
    for facts in rows.values_list("facts", flat=True)[:LOOKED_AT]:
        told: Any = (facts or {}).get("check") or {}
        if shape := Shape.of(told.get("model_shape")):
            return shape
    return None


def _one_disk(answers: Sequence[Mapping[str, Any]]) -> bool:
    """Tell whether all nodes seem to see one disk, by answers that they gave at one time."""
    seen = [(int(answer.get("disk_total") or 0), int(answer.get("disk_free") or 0)) for answer in answers]
    return all(total for total, _ in seen) and look_shared(seen)


def _checked(placement: Placement) -> Mapping[str, Any]:
    """Return what the node said at the launch; nothing of launches before that was kept."""
    found: Mapping[str, Any] = (placement.facts or {}).get("check") or {}
    return found


def _names(names: Sequence[str], *, one: bool) -> list[str]:
    """Return what each outlook is called; of one disk, which all see, there is one."""
    return [f"{' and '.join(names)}, which seem to see one disk"] if one else list(names)
