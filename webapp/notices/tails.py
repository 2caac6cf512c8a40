"""What a run's nodes wrote since the watch looked last: the newest lines alone, so that a look has a bounded cost.

Lines are 10 a second at most and samples one a second and node; where more than these limits have come (the service was
away), the older ones are passed over.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from training.spec.events import Kind, number
from webapp.runs.models import Attempt, Event, Placement
from webapp.runs.readings import PROBLEM

from .rules.hosts import NodeSamples, Sample
from .rules.lines import WATCHED, MetricsLine

LINES = 200
SAMPLES = 30  # of each node
MOST_SAMPLES = 1000  # of all nodes together


@dataclass(frozen=True)
class Tail:
    """`nodes`: those that a sample came of. `away`: a node that can't be reached, so silence means nothing."""

    lines: list[MetricsLine]
    nodes: list[NodeSamples]
    away: bool


def read(attempt: Attempt, after: int, upto: int) -> Tail:
    """Return what came with numbers after < n <= upto of the run's journal. Three queries, whatever came."""
    placed = list(attempt.placements.select_related("node").order_by("rank"))
    lines = [_line(*row) for row in _rows(attempt, Kind.METRICS, after, upto, LINES)]
    samples = _by_source(_rows(attempt, Kind.SAMPLE, after, upto, min(MOST_SAMPLES, SAMPLES * max(1, len(placed)))))
    nodes = [_node(placement, samples.get(f"node@{placement.rank}", [])) for placement in placed]
    away = any(placement.unreachable_since for placement in placed)
    return Tail([line for line in lines if line], [node for node in nodes if node.samples], away)


def phase(attempt: Attempt) -> str:
    """Return the name of the attempt's newest phase; one look at the index."""
    found = Event.objects.filter(run=attempt.run_id, kind=Kind.PHASE, attempt=attempt).order_by("-number")
    data = found.values_list("data", flat=True).first()
    return str(data.get("name", "")) if data else ""


Row = tuple[str, int | None, datetime, datetime, dict[str, Any]]


def _rows(attempt: Attempt, kind: str, after: int, upto: int, most: int) -> list[Row]:
    """Return at most the newest `most`, oldest first. With the run, whose index has the kind."""
    found = Event.objects.filter(run=attempt.run_id, kind=kind, number__gt=after, number__lte=upto, attempt=attempt)
    rows = found.order_by("-number").values_list("source", "step", "at", "received_at", "data")[:most]
    return [row for row in reversed(rows) if PROBLEM not in row[-1]]


def _line(source: str, step: int | None, at: datetime, received: datetime, data: dict[str, Any]) -> MetricsLine | None:
    if step is None:
        return None
    numbers = {name: _number(data.get(name)) for name in WATCHED}
    return MetricsLine(step, at.timestamp(), received.timestamp(), {k: v for k, v in numbers.items() if v is not None})


def _number(raw: object) -> float | None:
    try:
        return number(raw)
    except OverflowError:  # an integer of hundreds of digits
        return None


def _by_source(rows: Iterable[Row]) -> dict[str, list[Sample]]:
    found: dict[str, list[Sample]] = {}
    for source, _, at, _, data in rows:
        found.setdefault(source, []).append(Sample(at.timestamp(), data))
    return found


def _node(placement: Placement, samples: list[Sample]) -> NodeSamples:
    return NodeSamples(placement.node.name, samples, frozenset(placement.slot.get("gpus") or ()))
