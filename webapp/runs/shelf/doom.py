"""What deleting checkpoints would take and make impossible, and why it may not be: shown first, then held to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from django.db.models import Max

from training.spec.lint import Problem

from ..models import Attempt, Checkpoint, Export, Run
from ..states import EXPORT_STATES, RESUMABLE, RunState
from .leftover import leftover
from .places import Place, of_all

FIELD, LAST = "checkpoint", "even_last"


@dataclass(frozen=True)
class Doom:
    """`problems`: why not, in the way of all of it. `last`: nothing to resume or export from would be left."""

    checkpoints: list[Checkpoint]
    places: dict[int, list[Place]]
    problems: list[Problem] = field(default_factory=list)
    last: bool = False
    losses: list[str] = field(default_factory=list)

    @property
    def bytes(self) -> int:
        return sum(count for _, count in self.per_node)

    @property
    def rows(self) -> list[tuple[Checkpoint, list[Place]]]:
        """Each checkpoint with the places where something of it lies, as far as is known."""
        return [(row, [place for place in self.places[row.pk] if place.bytes]) for row in self.checkpoints]

    @property
    def per_node(self) -> list[tuple[str, int]]:
        """(node, bytes there), the most first."""
        sums: dict[str, int] = defaultdict(int)
        for places in self.places.values():
            for place in places:
                sums[place.name] += place.bytes
        found = [(name, count) for name, count in sums.items() if count]
        return sorted(found, key=lambda item: (-item[1], item[0]))

    @property
    def brought(self) -> list[str]:
        """The nodes on which more may lie than what they wrote, not measured yet."""
        found = (p.name for places in self.places.values() for p in places if p.brought and not p.measured)
        return sorted(set(found))


def doom(run: Run, checkpoints: Sequence[Checkpoint]) -> Doom:
    """Return what deleting `checkpoints` of `run` would mean; those that are deleted already count for nothing."""
    rows = [row for row in checkpoints if row.delete_asked_at is None and row.deleted_at is None]
    last = _none_left(run, rows)
    users = Users.of(rows)
    problems = [problem for row in rows for problem in users.in_the_way(row)]
    return Doom(rows, of_all(rows), problems, last, list(_losses(run, rows, last)))


@dataclass(frozen=True)
class Users:
    """What uses any of some checkpoints now, found in three queries."""

    exports: list[Export]
    attempts: list[Attempt]
    newest: dict[int, int]

    @classmethod
    def of(cls, rows: Sequence[Checkpoint]) -> Users:
        living = {row.attempt_id for row in rows if row.attempt.ended_at is None}
        steps = Checkpoint.objects.usable().filter(attempt__in=living).values_list("attempt").annotate(Max("step"))
        return cls(
            list(Export.objects.filter(checkpoint__in=rows, waits=False).exclude(state__in=EXPORT_STATES.ended)),
            list(Attempt.objects.filter(resume_from__in=rows, ended_at=None)),
            dict.fromkeys(living, 0) | dict(steps),
        )

    def in_the_way(self, row: Checkpoint) -> Iterator[Problem]:
        """Yield why `row` may not be deleted now."""
        what = f"step {row.step} of attempt {row.attempt.number}"
        if row.pinned:
            yield Problem(FIELD, f"{what} is pinned", "Unpin it first.")
        for export in self.exports:
            if export.checkpoint_id == row.pk:
                text = f"{what} is held by export {export.pk}, which is {export.state}"
                yield Problem(FIELD, text, "Wait for its end.")
        for attempt in self.attempts:
            if attempt.resume_from_id == row.pk:
                text = f"attempt {attempt.number} goes on from {what}"
                yield Problem(FIELD, text, "Wait for its end, or stop the run.")
        if row.step >= self.newest.get(row.attempt_id, row.step + 1):  # its node says the same
            wait = "Wait for the next save, or for the end of the attempt."
            yield Problem(FIELD, f"training goes on, and no complete one is newer than {what}", wait)


def _none_left(run: Run, rows: Sequence[Checkpoint]) -> bool:
    usable = Checkpoint.objects.usable().filter(attempt__run=run)
    return any(row.usable for row in rows) and not usable.exclude(pk__in=[row.pk for row in rows]).exists()


def _newest_left(run: Run, rows: Sequence[Checkpoint]) -> int | None:
    """Return the step of the newest usable one that is left where a newer one goes; None where none does."""
    usable = Checkpoint.objects.usable().filter(attempt__run=run).order_by("-attempt__number", "-step")
    doomed, newest = {row.pk for row in rows}, list(usable.values_list("pk", "step"))
    if not newest or newest[0][0] not in doomed:
        return None
    return next((step for key, step in newest if key not in doomed), None)


def _losses(run: Run, rows: Sequence[Checkpoint], last: bool) -> Iterator[str]:
    """Yield what can't be done any more, one sentence each."""
    if last and run.state in RESUMABLE:
        yield "The run can't be resumed any more: no other complete checkpoint of it is left."
    if last:
        later = "" if run.state == RunState.SUCCEEDED else " until it saves again"
        yield f"No further export of the run can be made{later}."
    elif (left := _newest_left(run, rows)) is not None:
        yield f"The run's newest complete checkpoint goes; the newest that is left is of step {left:,}."
    unwell = Export.objects.filter(checkpoint__in=rows, state__in=["failed", "cancelled"], waits=False)
    if failed := unwell.values_list("pk", flat=True):
        yield f"What did not end well can't be tried again: export {', '.join(map(str, failed))}."


def superfluous(run: Run) -> list[Checkpoint]:
    """Return what is left over of ended attempts and not in use."""
    found = leftover(run)
    users = Users.of(found)
    return [row for row in found if not any(users.in_the_way(row))]
