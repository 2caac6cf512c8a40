"""Checkpoints as pages and the API show them: each with its losses, places, uses, exports and what is asked of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from django.db.models import QuerySet

from training.spec.events import strict

from .. import glances
from ..models import Checkpoint, Export, Run
from .fates import fates
from .places import Place, disk, of_all
from .uses import Stage, Use

LOSS, EVAL_LOSS = "loss", "eval/loss"


@dataclass(frozen=True)
class Row:
    """`disk`: shared, private or empty, where nothing is known. `fate`: what keeps it, or why and when it goes."""

    checkpoint: Checkpoint
    loss: float | str | None
    eval_loss: float | str | None
    places: list[Place]
    uses: list[Use]
    disk: str = ""
    exports: list[Export] = field(default_factory=list)
    fate: str = ""

    @property
    def run(self) -> Run:
        return self.checkpoint.attempt.run

    @property
    def bytes(self) -> int:
        return sum(place.bytes for place in self.places) if self.checkpoint.deleted_at is None else 0

    @property
    def where(self) -> list[str]:
        """The nodes on which something of it lies, as far as is known."""
        there = () if self.checkpoint.deleted_at else self.places
        return list(dict.fromkeys(place.name for place in there if place.bytes))

    @property
    def gone(self) -> list[str]:
        return [place.name for place in self.places if place.gone]

    @property
    def pinned_on(self) -> list[Place]:
        return [place for place in self._keepers if place.copy and place.copy.pinned]

    @property
    def _keepers(self) -> list[Place]:
        """Where it was written: only there does training rotate it away."""
        return [place for place in self.places if place.ranks]

    @property
    def pin_text(self) -> str:
        """How far a pin has got: 'on 1 of 2 nodes yet'; empty where nothing is left to be done."""
        checkpoint, there, all_of = self.checkpoint, len(self.pinned_on), len(self._keepers)
        if checkpoint.pinned and there < all_of:
            return f"on {there} of {all_of} node{'s' if all_of != 1 else ''} yet"
        if not checkpoint.pinned and there and not checkpoint.settled:
            return f"still pinned on {there} of {all_of} node{'s' if all_of != 1 else ''}"
        return ""

    @property
    def problems(self) -> list[Place]:
        return [place for place in self.places if place.problem and not self.checkpoint.settled]

    @property
    def usable(self) -> bool:
        return self.checkpoint.usable

    @property
    def can(self) -> dict[str, Use]:
        return {use.name.partition(" ")[0]: use for use in self.uses}


def of_run(run: Run) -> list[Row]:
    """Return all of a run, its newest attempt's newest first."""
    found = made(_related(Checkpoint.objects.filter(attempt__run=run)).order_by("-attempt__number", "-step"))
    return with_fates(run, found)


def with_fates(run: Run, found: list[Row]) -> list[Row]:
    """Return rows of one run with what the rule of retention says of them."""
    fate = fates(run, [row.checkpoint for row in found])
    return [replace(row, fate=fate.get(row.checkpoint.pk, "")) for row in found]


def everywhere() -> QuerySet[Checkpoint]:
    """Return the checkpoints of all runs, newest first."""
    return _related(Checkpoint.objects.all()).order_by("-created_at", "-pk")


def _related(rows: QuerySet[Checkpoint]) -> QuerySet[Checkpoint]:
    return rows.select_related("attempt__run__cluster", "attempt__run__owner").prefetch_related("parts")


def made(checkpoints: Iterable[Checkpoint]) -> list[Row]:
    """Return a row of each, in a number of queries that does not grow with theirs."""
    rows = list(checkpoints)
    places, losses, exports = of_all(rows), _losses(rows), _exports(rows)
    stages: dict[int, Stage] = {}
    found = []
    for row in rows:
        stage = stages.setdefault(row.attempt.run_id, Stage(row.attempt.run))
        at = places[row.pk]
        loss, eval_loss = (losses.get((row.attempt_id, name, row.step)) for name in (LOSS, EVAL_LOSS))
        uses = stage.uses(row, at)
        found.append(Row(row, loss, eval_loss, at, uses, disk(at, row.nodes), exports[row.pk]))
    return found


def _losses(rows: Sequence[Checkpoint]) -> dict[tuple[int, str, int], float | str | None]:
    found = glances.at_steps({(row.attempt_id, row.step) for row in rows}, [LOSS, EVAL_LOSS])
    return {place: strict(value) for place, value in found.items()}


def _exports(rows: Sequence[Checkpoint]) -> dict[int, list[Export]]:
    found: dict[int, list[Export]] = defaultdict(list)
    for export in Export.objects.filter(checkpoint__in=rows, waits=False).select_related("node"):
        found[export.checkpoint_id].append(export)
    return found
