"""A failed attempt: why, where first, what shows it, what was done, and what to do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from training.spec.advice import Advice, advise
from training.spec.faults import SENTENCES, WORTH_RETRYING, Reason
from webapp.fleet.models import Node

from . import actions
from .logs import plain
from .models import Attempt, Placement, Run
from .queue.board import failed_nodes
from .states import RunState

LINES = 30


@dataclass(frozen=True)
class NodeEnd:
    """How one node's part ended. `part`: first, dragged (ended because of the first), or neither: ""."""

    placement: Placement
    part: str

    @property
    def exit(self) -> Mapping[str, Any]:
        return self.placement.exit or {}

    @property
    def evidence(self) -> Mapping[str, Any]:
        return self.exit.get("evidence") or {}

    @property
    def how(self) -> str:
        """Return how its launcher ended, in words; "" where that isn't known."""
        if self.exit.get("signal"):
            return f"signal {self.exit['signal']}"
        return f"exit code {self.exit['code']}" if self.exit.get("code") is not None else ""

    @property
    def log(self) -> str:
        return plain("\n".join(self.evidence.get("log", [])[-LINES:]))

    @property
    def stacks(self) -> list[tuple[int, str]]:
        return sorted((int(rank), text) for rank, text in self.evidence.get("stacks", {}).items())

    @property
    def kernel(self) -> str:
        return "\n".join(self.evidence.get("kernel", {}).get("lines", []))

    @property
    def kernel_unread(self) -> bool:
        """Tell whether the kernel's log was asked for and is not readable there."""
        return not self.evidence.get("kernel", {}).get("readable", True)


@dataclass(frozen=True)
class Suggestion:
    """`differs`: of each field that it changes the name, the old and the new value, as a recipe writes them."""

    advice: Advice
    differs: list[tuple[str, str, str]]


@dataclass(frozen=True)
class Failure:
    """`earlier`: it was restarted since. `done`: what the service did about it, in words."""

    attempt: Attempt
    text: str
    ends: list[NodeEnd]
    advice: list[Suggestion]
    done: str
    earlier: bool

    @property
    def sentence(self) -> str:
        return SENTENCES.get(Reason(self.attempt.reason), "") if self.attempt.reason else self.text

    @property
    def where(self) -> str:
        """Return the first node and rank that failed; "" where nothing had been started on nodes."""
        first = self.attempt.failure
        if not first:
            return ""
        return first["node"] if first.get("rank") is None else f"{first['node']}, rank {first['rank']}"

    @property
    def at(self) -> datetime | None:
        """Return when that was, by our own clock."""
        at = self.attempt.failure.get("at")
        return datetime.fromtimestamp(at, UTC) if at else self.attempt.ended_at


def failure(run: Run) -> Failure | None:
    """Return the failure that the run's page tells of: its own, or the one that it was restarted after."""
    newest = run.attempt
    if newest is None:
        return None
    if run.state == RunState.FAILED:
        return _of(run, newest, run.reason_text)
    if not newest.restart:
        return None
    before = run.attempts.filter(number=newest.number - 1).first()
    moved = run.transitions.filter(attempt=before, new=RunState.FAILED).order_by("-id").first()
    return _of(run, before, moved.cause if moved else "", newest) if before else None


def _of(run: Run, attempt: Attempt, text: str, after: Attempt | None = None) -> Failure:
    rows = attempt.placements.select_related("node").order_by("rank")
    first, dragged = attempt.failure.get("node_rank"), attempt.failure.get("dragged", [])
    parts = dict.fromkeys(dragged, "dragged") | ({first: "first"} if first is not None else {})
    ends = [NodeEnd(row, parts.get(row.rank, "")) for row in rows]
    ends.sort(key=lambda end: (end.part != "first", end.placement.rank))
    told = ends[0].exit.get("text", "") if first is not None and ends else ""
    advice = _advice(run, attempt.reason, told)
    return Failure(attempt, text, ends, advice, _done(run, attempt, after), after is not None)


def _advice(run: Run, reason: str, told: str) -> list[Suggestion]:
    recipe = run.parsed_recipe()

    def old(path: str) -> str:
        section, _, name = path.partition(".")
        return json.dumps(getattr(getattr(recipe, section), name) if name else getattr(recipe, section))

    found = advise(reason, recipe, told)
    return [Suggestion(one, [(path, old(path), json.dumps(new)) for path, new in one.changes.items()]) for one in found]


def _done(run: Run, attempt: Attempt, after: Attempt | None) -> str:
    if after is not None:
        return _restarted(run, after)
    limit = run.parsed_recipe().limits.restarts
    if attempt.stop_requested_at:
        return "Not restarted: it was asked to stop."
    if attempt.reason not in WORTH_RETRYING:
        return "Not restarted: another try would end the same way until something is changed."
    if not limit:
        return "Not restarted: limits.restarts is 0."
    if attempt.restart >= limit:
        return f"Not restarted any more: {attempt.restart} of {limit} tries are used up."
    return "Not restarted: the history says why."


def _restarted(run: Run, after: Attempt) -> str:
    nodes = ", ".join(p.node.name for p in after.placements.select_related("node"))
    words = f"Restarted {after.restart} of {run.parsed_recipe().limits.restarts}"
    waited = actions.restart_delay(after.restart).total_seconds()
    start = f"from step {after.resume_from.step}" if after.resume_from else "from the beginning"
    spared = _spared(run, after) if nodes else ""
    return f"{words} after {waited:.0f} s, {start}" + (f", on {nodes}{spared}." if nodes else ".")


def _spared(run: Run, after: Attempt) -> str:
    """Return what became of the nodes that had failed, where the recipe minds them."""
    failed = failed_nodes(run, after)
    taken = set(after.placements.values_list("node", flat=True))
    out = ", ".join(Node.objects.filter(pk__in=failed - taken).values_list("name", flat=True))
    again = ", ".join(Node.objects.filter(pk__in=failed & taken).values_list("name", flat=True))
    told = [f"without {out}, which had failed"] if out else []
    told += [f"with {again} once more, for no other was free"] if again else []
    return f"; {'; '.join(told)}" if told else ""


def advice_named(run: Run, key: str) -> Advice | None:
    """Return the advice that the run's page gives under `key`, if it changes the recipe."""
    found = failure(run)
    given = [one.advice for one in found.advice] if found else []
    return next((one for one in given if one.key == key and one.changes), None)
