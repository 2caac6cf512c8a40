"""What a run's nodes wrote since the watch looked last: the newest lines alone, so that a look has a bounded cost.

Lines are 10 a second at most and samples one a second and node; where more than these limits have come (the service was
away), the older ones are passed over.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from training.spec.events import Kind, number
from webapp.runs.folding import BLOCK, unfolded
from webapp.runs.models import Attempt, Event, Placement, SampleBlock
from webapp.runs.readings import PROBLEM

from .rules.hosts import NodeSamples, Sample
from .rules.lines import WATCHED, MetricsLine

LINES = 200
WRITER = "train@0"  # of metrics
SAMPLES = 30  # of each node
MOST_SAMPLES = 1000  # of all nodes together


@dataclass(frozen=True)
class Tail:
    """`nodes`: those that a sample came of. `away`: a node that can't be reached, so silence means nothing."""

    lines: list[MetricsLine]
    nodes: list[NodeSamples]
    away: bool


class Told(NamedTuple):
    """A line, as far as it is judged."""

    number: int
    source: str
    step: int | None
    at: datetime
    received_at: datetime
    data: dict[str, Any]


def read(attempt: Attempt, after: int, upto: int) -> Tail:
    """Return what came with numbers after < n <= upto of the run's journal. Four queries, whatever came."""
    placed = list(attempt.placements.all())
    metrics = _metrics(attempt, after, upto)
    samples = _by_source(_rows(attempt, Kind.SAMPLE, after, upto, min(MOST_SAMPLES, SAMPLES * max(1, len(placed)))))
    nodes = [_node(placement, samples.get(f"node@{placement.rank}", [])) for placement in placed]
    away = any(placement.unreachable_since for placement in placed)
    return Tail([line for told in metrics if (line := _line(told))], [node for node in nodes if node.samples], away)


def _rows(attempt: Attempt, kind: str, after: int, upto: int, most: int) -> list[Told]:
    """Return at most the newest `most`, oldest first. With the run, whose index has the kind."""
    found = Event.objects.filter(run=attempt.run_id, kind=kind, number__gt=after, number__lte=upto, attempt=attempt)
    rows = [Told._make(row) for row in found.order_by("-number").values_list(*Told._fields)[:most]]
    return [row for row in reversed(rows) if PROBLEM not in row.data]


def _metrics(attempt: Attempt, after: int, upto: int) -> list[Told]:
    """Return the newest lines with metrics. More than some sixty may have been folded since (see folding).

    Events are read before blocks: what is folded in between is in both, and counts once.
    """
    found = {row.number: row for row in _rows(attempt, Kind.METRICS, after, upto, LINES)}
    blocks = SampleBlock.objects.filter(attempt=attempt, source=WRITER, last__gt=after).order_by("-last")
    for block in blocks[: LINES // BLOCK + 1]:
        for event in unfolded(block):
            if event.kind == Kind.METRICS and after < event.number <= upto and PROBLEM not in event.data:
                found[event.number] = Told._make(getattr(event, name) for name in Told._fields)
    return [found[number] for number in sorted(found)][-LINES:]


def phase(attempt: Attempt) -> str:
    """Return the name of the attempt's newest phase; one look at the index."""
    found = Event.objects.filter(run=attempt.run_id, kind=Kind.PHASE, attempt=attempt).order_by("-number")
    data = found.values_list("data", flat=True).first()
    return str(data.get("name", "")) if data else ""


def _line(told: Told) -> MetricsLine | None:
    if told.step is None:
        return None
    numbers = {name: _number(told.data.get(name)) for name in WATCHED}
    known = {name: value for name, value in numbers.items() if value is not None}
    return MetricsLine(told.step, told.at.timestamp(), told.received_at.timestamp(), known)


def _number(raw: object) -> float | None:
    try:
        return number(raw)
    except OverflowError:  # an integer of hundreds of digits
        return None


def _by_source(rows: Iterable[Told]) -> dict[str, list[Sample]]:
    found: dict[str, list[Sample]] = {}
    for row in rows:
        found.setdefault(row.source, []).append(Sample(row.at.timestamp(), row.data))
    return found


def _node(placement: Placement, samples: list[Sample]) -> NodeSamples:
    return NodeSamples(placement.node.name, samples, frozenset(placement.slot.get("gpus") or ()))
