"""Runs with long series, whose lines go through the journal as those of nodes do."""

from __future__ import annotations

import random

from tests.webapp.rows import START, World
from training.spec.events import Event as Line
from webapp.runs import journal
from webapp.runs.models import Attempt, Placement, Run, Stream
from webapp.runs.states import RunState

AT_ONCE = 2000  # lines
TOKENS = 8192.0  # a step


def make(world: World, count: int, points: int) -> list[int]:
    """Return the keys of `count` ended runs of this many steps."""
    return [_run(world, number, points).pk for number in range(count)]


def _run(world: World, number: int, points: int) -> Run:
    run = world.draft(f"long {number}")
    attempt = Attempt.objects.create(run=run, number=1)
    node = world.nodes[0]
    Placement.objects.create(attempt=attempt, node=node, rank=0, slot=vars(node.slot()))
    stream = Stream.objects.create(attempt=attempt, node=node, source="train@0", path="/train@0")
    chance = random.Random(number)
    for first in range(1, points + 1, AT_ONCE):
        lines = [_line(step, chance) for step in range(first, min(first + AT_ONCE, points + 1))]
        journal.record(stream, lines, lines[-1].seq)
    Run.objects.filter(pk=run.pk).update(state=RunState.SUCCEEDED, total_steps=points)
    return run


def _line(step: int, chance: random.Random) -> Line:
    told = {"loss": 2 + 8 / step + chance.gauss(0, 0.05), "num_tokens": TOKENS * step}
    return Line(step, START + step, "metrics", step, told)
