"""One look at one attempt: what came since the last one, and what the rules say of it."""

from __future__ import annotations

from dataclasses import replace

from training.spec import patience
from webapp.notices import tails
from webapp.notices.rules import hosts, lines
from webapp.notices.rules.memory import Memory
from webapp.notices.rules.verdict import Level, Verdict
from webapp.notices.tails import Tail
from webapp.runs.models import Attempt, Run
from webapp.runs.shelf import room

SAVING = "saving"  # the phase in which a rank is in the part "save"
FORECAST_EVERY = 300.0  # seconds: the disk's forecast asks a dozen rows, and changes slowly


def judge(attempt: Attempt, tail: Tail, memory: Memory, now: float) -> tuple[list[Verdict], Memory]:
    """Return the verdicts and what to remember; `now`: seconds since the epoch."""
    run, memory = attempt.run, memory.stepped_on(tail.lines)
    spiked, losses = lines.spike(tail.lines, memory.losses)
    memory = replace(memory, losses=losses)
    found = [*lines.non_finite(tail.lines), *([spiked] if spiked else [])]
    found += [verdict for node in tail.nodes for verdict in hosts.of_node(node)]
    if tail.nodes and not tail.away:  # of nodes that nothing is heard of, no step says nothing
        found.append(_progress(run, attempt, memory, now))
    if now - memory.foretold >= FORECAST_EVERY:
        memory = replace(memory, foretold=now)
        found += foretold(run, now)
    return found, memory


def _progress(run: Run, attempt: Attempt, memory: Memory, now: float) -> Verdict:
    """Return whether steps come. A save is given as much longer as the ranks' own watch on hangs gives it."""

    def within(seconds: float) -> Verdict:
        return lines.progress(now, memory.stepped, memory.step, memory.between, seconds)

    hang_seconds = run.parsed_recipe().limits.hang_seconds
    found = within(hang_seconds)
    saves = found.level == Level.BAD and tails.phase(attempt) == SAVING
    return within(patience.times("save") * hang_seconds) if saves else found


def foretold(run: Run, now: float) -> list[Verdict]:
    """Return what the checkpoints to come will do to the disk with the least to spare."""
    tightest = room.tightest(room.rooms(run))
    return [hosts.forecast(now, tightest.outlook.fits, tightest.text)] if tightest else []
