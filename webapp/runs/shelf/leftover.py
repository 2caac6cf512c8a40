"""What ended attempts left that neither the run nor the rule of retention needs: offered, never deleted by itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from training.spec.retention import Seen, judged
from training.spec.sections.checkpoints import Checkpoints as Rule
from training.spec.superseded import Past, superseded

from ..models import Attempt, Checkpoint, Run
from .fates import seen_of


def leftover(run: Run) -> list[Checkpoint]:
    """Return what may go, oldest attempt first: what later attempts left behind them, and of the newest attempt with a
    complete one, once it has ended, all but that one and what is best or kept for good.
    """
    found = Checkpoint.objects.filter(attempt__run=run, delete_asked_at=None, deleted_at=None)
    rows = list(found.select_related("attempt").prefetch_related("parts").order_by("step"))
    attempts = list(run.attempts.select_related("resume_from__attempt").order_by("number"))
    rule, seen = run.parsed_recipe().checkpoints, seen_of(rows, run)
    by_attempt: dict[int, list[Checkpoint]] = defaultdict(list)
    for row in rows:
        by_attempt[row.attempt_id].append(row)
    past = [_past(attempt, [seen[row.pk] for row in by_attempt[attempt.pk]]) for attempt in attempts]
    gone = {(old.attempt, old.verdict.step) for old in superseded(past, rule) if not old.verdict.kept}
    gone |= set(_ended(attempts, past, rule))
    return [row for attempt in attempts for row in by_attempt[attempt.pk] if (attempt.number, row.step) in gone]


def _past(attempt: Attempt, seen: Sequence[Seen]) -> Past:
    origin = attempt.resume_from
    return Past(attempt.number, (origin.attempt.number, origin.step) if origin else None, tuple(seen))


def _ended(attempts: Sequence[Attempt], past: Sequence[Past], rule: Rule) -> Iterator[tuple[int, int]]:
    """Yield (attempt, step) of what an attempt that is over keeps for the next save alone, or can't be used."""
    whole = [one.number for one in past if any(seen.complete for seen in one.checkpoints)]
    one_alone = rule.model_copy(update={"keep": 1})
    for attempt, one in zip(attempts, past, strict=True):
        if attempt.ended_at is None or attempt.number < max(whole, default=0):
            continue
        torn = {seen.step for seen in one.checkpoints if not (seen.complete or seen.pinned or seen.held)}
        for verdict in judged(one.checkpoints, one_alone):
            if not verdict.kept or verdict.step in torn:
                yield attempt.number, verdict.step
