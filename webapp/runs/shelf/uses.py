"""What a checkpoint can be used for, or why not."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from webapp.fleet.models import Node

from ..models import Checkpoint, Run
from ..queue.board import seats_of
from ..queue.plan import pool
from ..states import RESUMABLE, RunState
from .places import Place

RESUME, EXPORT = "resume", "export"


@dataclass(frozen=True)
class Use:
    """`why`: on what terms it can be, or why it can't."""

    name: str
    possible: bool
    why: str = ""


@dataclass(frozen=True)
class Stage:
    """What of a run decides over its checkpoints' uses; made once for all of them."""

    run: Run

    @cached_property
    def known(self) -> set[int]:
        """Ids of nodes that are read from, of any cluster: the run may have been moved since."""
        return set(Node.objects.known().values_list("pk", flat=True))

    @cached_property
    def ranks(self) -> int:
        """How many ranks a resume would have, as far as the nodes tell now."""
        found = pool(self.run.wished(), seats_of(self.run.cluster_id))
        return sum(found.share(seat) for seat in found.seats[: found.nodes])

    def uses(self, checkpoint: Checkpoint, places: list[Place]) -> list[Use]:
        if lacks := why_unusable(checkpoint):
            return [Use(RESUME, False, lacks), Use(EXPORT, False, lacks)]
        return [self._resume(checkpoint, places), Use(EXPORT, True)]

    def _resume(self, checkpoint: Checkpoint, places: list[Place]) -> Use:
        if checkpoint.step >= self.run.total_steps:
            return Use(RESUME, False, "it is the run's last step")
        if self.run.state == RunState.SUCCEEDED:
            return Use(RESUME, False, "the run has succeeded: clone it to train on")
        away = [place.name for place in places if place.ranks and place.node_id not in self.known]
        if away:
            return Use(RESUME, False, f"not reached any more: {', '.join(away)}")
        return Use(RESUME, True, "; ".join(filter(None, [self._ranks(checkpoint), self._when()])))

    def _ranks(self, checkpoint: Checkpoint) -> str:
        now, then = self.ranks, checkpoint.world_size
        if now == then:
            return f"on {now} rank{'s' if now != 1 else ''}, as it was saved"
        return f"on {now} rank{'s' if now != 1 else ''} in place of {then}: it is resharded, random numbers begin anew"

    def _when(self) -> str:
        return "" if self.run.state in RESUMABLE else "once the run has stopped"


def why_unusable(checkpoint: Checkpoint) -> str:
    """Return why it is good for nothing; empty where it is usable."""
    if checkpoint.deleted_at:
        return "it was deleted"
    if checkpoint.delete_asked_at:
        return "it is being deleted"
    if checkpoint.completed_at is None:
        return f"incomplete: {len(checkpoint.parts.all())} of {checkpoint.nodes} nodes' manifests"
    return ""
