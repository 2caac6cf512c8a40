"""PURE: what the lines of attempts say of the weights in one checkpoint, for its passport.

Lines are those of rank 0's node: events.jsonl there, or the service's rows of it. Each attempt counts as far as the
checkpoint that the next one went on from, the last as far as the checkpoint in question.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .events import Kind, number, strict
from .passport import Cost, Loss, Losses

KINDS = (Kind.DATA, Kind.STARTED, Kind.RESUMED, Kind.METRICS, Kind.EVALUATION, Kind.CHECKPOINT)


@dataclass(frozen=True)
class Line:
    """One event; `at` in seconds since the epoch."""

    kind: str
    step: int | None
    at: float
    data: Mapping[str, Any]


@dataclass
class Told:
    """What one attempt's lines say up to `upto`."""

    upto: int
    counts: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    resumed: dict[str, Any] = field(default_factory=dict)
    resumed_step: int | None = None
    started_at: float | None = None
    ended_at: float | None = None
    losses: list[Loss] = field(default_factory=list)
    evaluations: list[Loss] = field(default_factory=list)

    def take(self, line: Line) -> None:
        """Learn from one line. They come in the order in which they were written."""
        data = dict(strict(dict(line.data)))
        if line.kind == Kind.DATA:
            self.counts = data
        elif line.kind == Kind.STARTED:
            self.facts = data
            self.started_at = self.started_at or line.at
        elif line.kind == Kind.RESUMED:
            self.resumed, self.resumed_step = data, line.step
        elif line.step is not None and line.step <= self.upto:
            self._take_step(line, data)

    def _take_step(self, line: Line, data: dict[str, Any]) -> None:
        assert line.step is not None
        if line.kind == Kind.CHECKPOINT and line.step == self.upto:
            self.ended_at = line.at
        elif number(data.get("loss")) is not None and line.kind in (Kind.METRICS, Kind.EVALUATION):
            where = self.losses if line.kind == Kind.METRICS else self.evaluations
            where.append(Loss(step=line.step, loss=data["loss"]))


def told(lines: Iterable[Line], upto: int) -> Told:
    """Return what the lines of one attempt say of the weights at step `upto`."""
    found = Told(upto)
    for line in lines:
        found.take(line)
    return found


def losses(attempts: Sequence[Told]) -> Losses:
    """Return the figures over all attempts, in their order."""
    trained = [loss for one in attempts for loss in one.losses]
    tried = [loss for one in attempts for loss in one.evaluations]
    return Losses(
        first=trained[0] if trained else None,
        last=trained[-1] if trained else None,
        lowest=_least(trained),
        last_evaluation=tried[-1] if tried else None,
        best_evaluation=_least(tried),
    )


def cost(attempts: Sequence[Told], tokens: int | None = None) -> Cost:
    """Return what it took. Seconds are from each attempt's first step to the checkpoint that counts of it."""
    spans = [(one.started_at, one.ended_at) for one in attempts]
    known = [end - start for start, end in spans if start is not None and end is not None]
    return Cost(tokens=tokens, seconds=round(sum(known), 3) if known else None)


def _least(found: Sequence[Loss]) -> Loss | None:
    finite = [loss for loss in found if math.isfinite(number(loss.loss) or 0.0)]
    return min(finite, key=lambda loss: number(loss.loss) or 0.0, default=None)
