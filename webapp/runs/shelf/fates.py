"""Which checkpoints stay and why, by the recipe's rule of retention: the very rule that training deletes by."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from training.spec.events import Kind, number
from training.spec.foreseen import Saves, foreseen
from training.spec.retention import Seen, Verdict, judged
from training.spec.sections.checkpoints import Checkpoints

from ..models import Checkpoint, Event, Export, Run
from ..states import ENDED, EXPORT_STATES

SHOWN = 6  # of the steps that stand
Metrics = dict[tuple[int, int], Mapping[str, Any]]


def kept(run: Run) -> str:
    """Return which checkpoints stay of a run that goes to its end, in words; empty while its steps are not known.

    Of one that has ended the rule says nothing more: what stands is what nobody has deleted.
    """
    if run.state in ENDED:
        return _left(run)
    said = foreseen(run.parsed_recipe().checkpoints, run.total_steps).sentence if run.total_steps else ""
    return said[:1].upper() + said[1:]


def _left(run: Run) -> str:
    every = Checkpoint.objects.filter(attempt__run=run).values_list("step", "deleted_at", "delete_asked_at")
    steps = sorted({step for step, *gone in every if not any(gone)})
    if not steps:
        return "Nothing of it stands any more" if every else ""
    more = f"{len(steps) - SHOWN:,} more and " if len(steps) > SHOWN else ""
    listed = ", ".join(f"{step:,}" for step in steps[-SHOWN:])
    return f"The rule of retention held while it trained; what stands now, {more}{listed}, stays until it is deleted"


def fates(run: Run, rows: Sequence[Checkpoint]) -> dict[int, str]:
    """Return {checkpoint id: what keeps it, when it goes, or why it went}; nothing where there is nothing to say."""
    found = _rotated(run, rows)
    living = {row.attempt_id for row in rows if row.attempt.ended_at is None}
    if living:
        standing = list(Checkpoint.objects.filter(attempt__in=living, deleted_at=None, delete_asked_at=None))
        rule, seen = run.parsed_recipe().checkpoints, seen_of(standing, run)
        for attempt in living:
            found |= _living([(row, seen[row.pk]) for row in standing if row.attempt_id == attempt], rule, run)
    return found


def seen_of(rows: Sequence[Checkpoint], run: Run) -> dict[int, Seen]:
    """Return how the rule sees each: with the figure it goes by, as its node told it when it was saved."""
    rule = run.parsed_recipe().checkpoints
    metrics, held = _metrics(rows, run), _held(rows)
    return {row.pk: _seen(row, metrics.get((row.attempt_id, row.step), {}), rule, held) for row in rows}


def _seen(row: Checkpoint, metrics: Mapping[str, Any], rule: Checkpoints, held: dict[int, list[int]]) -> Seen:
    told = metrics.get(rule.best_metric)
    known = told if isinstance(told, Mapping) else {}
    at = known.get("step")
    return Seen(
        row.step,
        row.completed_at is not None,
        number(known.get("value")),
        at if isinstance(at, int) else None,
        row.pinned,
        tuple(held[row.pk]),
    )


def _metrics(rows: Sequence[Checkpoint], run: Run) -> Metrics:
    lines = Event.objects.filter(
        run=run, kind=Kind.CHECKPOINT, attempt__in={r.attempt_id for r in rows}, step__in={r.step for r in rows}
    )
    found: Metrics = {}
    for attempt, step, data in lines.values_list("attempt_id", "step", "data"):
        if isinstance(data.get("metrics"), Mapping):
            found[attempt, step or 0] = data["metrics"]
    return found


def _held(rows: Sequence[Checkpoint]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = defaultdict(list)
    living = (
        Export.objects.filter(checkpoint__in=rows, waits=False).exclude(state__in=EXPORT_STATES.ended).order_by("pk")
    )
    for key, checkpoint in living.values_list("pk", "checkpoint_id"):
        found[checkpoint].append(key)
    return found


def _living(pairs: Sequence[tuple[Checkpoint, Seen]], rule: Checkpoints, run: Run) -> dict[int, str]:
    """Of an attempt that goes on: why each stays now, and which go with the next save by steps."""
    every = [seen for _, seen in pairs]
    coming = next_save(rule, run, max((seen.step for seen in every), default=0))
    now = {verdict.step: verdict for verdict in judged(every, rule)}
    then = {verdict.step: verdict for verdict in judged([*every, Seen(coming)], rule)} if coming else now
    return {row.pk: _words(now[row.step], then[row.step], coming) for row, _ in pairs}


def _words(now: Verdict, then: Verdict, coming: int) -> str:
    if not now.kept:
        return f"goes: {now.why}"
    return f"stays: {now.why}" if then.kept else f"goes with the save of step {coming:,}: {then.why}"


def next_save(rule: Checkpoints, run: Run, newest: int) -> int:
    """Return the step of the next save by steps; 0: there is none."""
    saves = Saves(rule, run.total_steps)
    after = max(run.step, newest)
    number_ = min(after // rule.every_steps, len(saves)) + 1
    return saves.at(number_) if after < run.total_steps and number_ <= len(saves) else 0


def _rotated(run: Run, rows: Sequence[Checkpoint]) -> dict[int, str]:
    """Return why training itself deleted those that it did."""
    gone = {(row.attempt_id, row.step): row.pk for row in rows if row.deleted_at and not row.delete_asked_at}
    if not gone:
        return {}
    lines = Event.objects.filter(run=run, kind=Kind.CHECKPOINT_DELETED, step__in={step for _, step in gone})
    found = {}
    for attempt, step, data in lines.values_list("attempt_id", "step", "data"):
        key = gone.get((attempt, step or 0))
        if key and data.get("why"):
            found[key] = f"by the rule: {data['why']}"
    return found
