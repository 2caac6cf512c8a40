"""The watch on runs: each that is running is looked at every 15 seconds, with what came since the look before.

A look that is delivered twice, or killed anywhere, changes nothing: it is claimed by raising `due_at`, and what it
found is written in one transaction with how far it looked.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from django.db import transaction
from django.utils import timezone

from webapp import dispatch
from webapp.notices import telling
from webapp.notices.models import Notice, Watch
from webapp.notices.part import EVENT
from webapp.notices.rules.holding import Held, Since, hold
from webapp.notices.rules.memory import Memory
from webapp.notices.rules.verdict import Level, Verdict
from webapp.notices.tails import read
from webapp.runs import journal, lifecycle
from webapp.runs.models import Attempt, Run
from webapp.runs.states import RunState

from .judge import judge

LOOK_EVERY = timedelta(seconds=15)


class Outcome(NamedTuple):
    """What follows of a verdict; `notice`: the one that is open."""

    verdict: Verdict
    held: Held
    notice: Notice | None


def sweep(now: datetime) -> None:
    """Begin a watch on each attempt that has come to run; send one message where any is due."""
    new = Attempt.objects.filter(run__state=RunState.RUNNING, ended_at=None, watch=None)
    Watch.objects.bulk_create([Watch(attempt=attempt) for attempt in new], ignore_conflicts=True)
    if Watch.objects.due(now).exists():
        dispatch.send(dispatch.WATCH_RUNS)


def watch_runs(now: datetime | None = None) -> None:
    """Look at every run that is due."""
    now = now or timezone.now()
    due = Watch.objects.due(now).select_related("attempt__run")
    for watch in due.prefetch_related("attempt__placements__node"):
        if Watch.objects.filter(pk=watch.pk, due_at=watch.due_at).update(due_at=now + LOOK_EVERY):
            look(watch, now)


def look(watch: Watch, now: datetime) -> None:
    """Look at one run. What stands in the journal was committed in the order of its numbers, so none is missed."""
    attempt = watch.attempt
    run = attempt.run
    tail = read(attempt, watch.cursor, run.journal)
    found, memory = judge(attempt, tail, Memory.of(watch.memory, now.timestamp()), now.timestamp())
    notices = {f"{n.kind} {n.key}": n for n in Notice.objects.open().filter(attempt=attempt)}
    outcomes = [
        Outcome(v, hold(v, memory.since.get(v.name), is_open=v.name in notices), notices.get(v.name)) for v in found
    ]
    memory = replace(memory, since=_since(memory, outcomes))
    keep(watch, Watch(cursor=run.journal, memory=memory.stored(), looked_at=now), outcomes)


def _since(memory: Memory, outcomes: list[Outcome]) -> dict[str, Since]:
    """What nothing was said of now stays remembered as it was."""
    said = {outcome.verdict.name for outcome in outcomes}
    kept = {name: since for name, since in memory.since.items() if name not in said}
    return kept | {verdict.name: held.since for verdict, held, _ in outcomes if held.since}


@transaction.atomic
def keep(watch: Watch, seen: Watch, outcomes: list[Outcome]) -> bool:
    """Write a look down; False where the run has moved on, or another look came first, and nothing is written."""
    changes = any(held.begins is not None or held.ends for _, held, _ in outcomes)
    if changes:  # the run's row first, as whoever moves it does: see lifecycle.lock
        lifecycle.lock(watch.attempt.run_id)
    running = Run.objects.filter(pk=watch.attempt.run_id, state=RunState.RUNNING).values("pk")
    same = Watch.objects.filter(pk=watch.pk, looked_at=watch.looked_at, attempt__run__in=running)
    if not same.update(cursor=seen.cursor, memory=seen.memory, looked_at=seen.looked_at):
        return False
    for outcome in outcomes:
        _keep(watch.attempt, outcome, seen.looked_at or timezone.now())
    return True


def _keep(attempt: Attempt, outcome: Outcome, now: datetime) -> None:
    """Most verdicts are that all is well, and touch no row."""
    verdict, held, notice = outcome
    seen = {"last_seen_at": now, "figure": verdict.figure[:100], "text": verdict.text}
    if held.begins is not None:
        _begin(attempt, verdict, held.begins, {"noticed_at": now, **seen})
    elif held.ends and notice:
        if Notice.objects.open().filter(pk=notice.pk).update(ended_at=now):
            _tell(notice, telling.OVER)
    elif verdict.level == Level.BAD and notice:
        Notice.objects.open().filter(pk=notice.pk).update(**seen)


def _begin(attempt: Attempt, verdict: Verdict, since: float, seen: dict[str, Any]) -> None:
    began = {"run_id": attempt.run_id, "began_at": datetime.fromtimestamp(since, UTC)}
    notice, made = Notice.objects.get_or_create(
        attempt=attempt, kind=verdict.kind, key=verdict.key, ended_at=None, defaults={**began, **seen}
    )
    if made:
        _tell(notice, telling.BEGINS)


def _tell(notice: Notice, what: str) -> None:
    """Have open pages look again, and send it to whoever asked."""
    data = {"notice": notice.pk, "what": what, "kind": notice.kind, "key": notice.key, "text": notice.text}
    journal.note(notice.attempt, EVENT, data, source="service:notice")
    telling.of_notice(notice, what)
