"""One look at one attempt: what came since the last one, and what the rules say of it."""

from __future__ import annotations

from dataclasses import replace

from webapp.notices.rules import hosts, lines
from webapp.notices.rules.memory import Memory
from webapp.notices.rules.verdict import Verdict
from webapp.notices.tails import Tail
from webapp.runs.models import Run
from webapp.runs.shelf import room

FORECAST_EVERY = 300.0  # seconds: the disk's forecast asks a dozen rows, and changes slowly


def judge(run: Run, tail: Tail, memory: Memory, now: float) -> tuple[list[Verdict], Memory]:
    """Return the verdicts and what to remember; `now`: seconds since the epoch."""
    memory = memory.stepped_on(tail.lines)
    spiked, losses = lines.spike(tail.lines, memory.losses)
    memory = replace(memory, losses=losses)
    found = [*lines.non_finite(tail.lines), *([spiked] if spiked else [])]
    found += [verdict for node in tail.nodes for verdict in hosts.of_node(node)]
    if tail.nodes and not tail.away:  # of nodes that nothing is heard of, no step says nothing
        found.append(_progress(run, memory, now))
    if now - memory.foretold >= FORECAST_EVERY:
        memory = replace(memory, foretold=now)
        found += foretold(run, now)
    return found, memory


def _progress(run: Run, memory: Memory, now: float) -> Verdict:
    hang_seconds = run.parsed_recipe().limits.hang_seconds
    return lines.progress(now, memory.stepped, memory.step, memory.between, hang_seconds)


def foretold(run: Run, now: float) -> list[Verdict]:
    """Return what the checkpoints to come will do to the disk with the least to spare."""
    tightest = room.tightest(room.rooms(run))
    return [hosts.forecast(now, tightest.outlook.fits, tightest.text)] if tightest else []
