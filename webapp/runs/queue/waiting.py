"""What one queued run waits for, as its page and the API tell it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from django.utils import timezone

from ..models import Run
from ..states import RunState
from .board import Board, board
from .plan import Verdict, Waits
from .words import sentence


@dataclass(frozen=True)
class Waiting:
    """`place`: 1 is next. `runs`: those that hold, or are promised, what it waits for."""

    place: int
    of: int
    text: str
    runs: Sequence[int] = field(default_factory=tuple)


def waiting(run: Run) -> Waiting | None:
    """Return it; None where the run isn't queued."""
    return on_board(run, board(run.cluster_id)) if run.state == RunState.QUEUED else None


def on_board(run: Run, found: Board) -> Waiting | None:
    verdict = found.verdicts.get(run.pk)
    if verdict is None:  # it has just moved on
        return None
    place = [other.pk for other in found.waiting].index(run.pk) + 1
    return Waiting(place, len(found.waiting), sentence(verdict, timezone.now()), _runs(verdict))


def _runs(verdict: Verdict) -> tuple[int, ...]:
    """Return the runs in its way, each once."""
    blocks = verdict.blocks if isinstance(verdict, Waits) else ()
    found = [run for block in blocks for run in (*(holder.run for holder in block.held), *block.kept)]
    return tuple(dict.fromkeys(found))
