"""PURE: what the exits of a job's nodes mean for the run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from training.spec.faults import SENTENCES, SYMPTOMS, Reason
from webapp.runs.states import RunState

CLEAN = frozenset({Reason.COMPLETED, Reason.STOPPED, Reason.TIME_LIMIT})
# What a node says when we ended it, or when it had nothing to complain of.
DRAGGED = CLEAN | {Reason.STOPPED_UNSAVED}
# In a stop these are faults of their own; the others are what an impatient end looks like.
FAULTS = frozenset(
    {
        Reason.NON_FINITE,
        Reason.OUT_OF_GPU_MEMORY,
        Reason.DISK_FULL,
        Reason.DATA,
        Reason.CHECKPOINT,
        Reason.CONFIGURATION,
        Reason.ASSERTION,
    }
)


@dataclass(frozen=True)
class Exit:
    """How one node's part ended. `at`: seconds since the epoch by our own clock.

    `worker`: the first of its ranks that failed, counted over all nodes. `stopped`: one of its ranks had been
    stopped by a signal. `waits`: each of its ranks that hung waited for another.
    """

    node: str
    rank: int
    reason: Reason
    text: str
    at: float
    worker: int | None = None
    stopped: bool = False
    waits: bool = False


@dataclass(frozen=True)
class Verdict:
    """How the run ends. `failure`: which node was first, as models.Attempt.failure has it; empty where none failed."""

    state: RunState
    reason: Reason
    text: str
    failure: dict[str, Any] = field(default_factory=dict)


def read(node: str, rank: int, exit: dict[str, Any], offset: float) -> Exit:
    """Return the exit that a node wrote; `offset` is its clock's lead in seconds. What we wrote is by our own."""
    try:
        reason = Reason(exit.get("reason", ""))
    except ValueError:
        reason = Reason.RANK_FAILED
    shown = exit.get("evidence") or {}
    hanging = shown.get("hanging") or []
    return Exit(
        node,
        rank,
        reason,
        str(exit.get("text", "")),
        float(exit.get("at") or 0.0) - (0.0 if exit.get("ours") else offset),
        exit.get("rank"),
        bool(shown.get("stopped")),
        bool(hanging) and all(one.get("waits") for one in hanging),
    )


def of_ended(exits: Sequence[Exit]) -> Verdict:
    """Return how a run ends whose nodes ended without being asked to."""
    reasons = {e.reason for e in exits}
    if reasons == {Reason.COMPLETED}:
        return Verdict(RunState.SUCCEEDED, Reason.COMPLETED, SENTENCES[Reason.COMPLETED])
    if reasons <= CLEAN and Reason.TIME_LIMIT in reasons:
        return Verdict(RunState.STOPPED, Reason.TIME_LIMIT, SENTENCES[Reason.TIME_LIMIT])
    if reasons <= CLEAN:
        text = f"{SENTENCES[Reason.STOPPED]}; asked for on a node, not here"
        return Verdict(RunState.STOPPED, Reason.STOPPED, text)
    return _failed(exits, _guilty(exits))


def of_stopped(exits: Sequence[Exit]) -> Verdict:
    """Return how a run ends that was asked to stop."""
    reasons = {e.reason for e in exits}
    if reasons == {Reason.COMPLETED}:
        return Verdict(RunState.SUCCEEDED, Reason.COMPLETED, "finished before the stop took hold")
    if faulty := [e for e in exits if e.reason in FAULTS]:
        return _failed(exits, faulty)
    reason = Reason.STOPPED if reasons <= CLEAN else Reason.STOPPED_UNSAVED
    return Verdict(RunState.STOPPED, reason, SENTENCES[reason])


def at_launch(node: str, rank: int, at: float) -> dict[str, Any]:
    """Return the failure of an attempt that a node kept from starting; see Verdict."""
    return {"node": node, "node_rank": rank, "rank": None, "at": at, "dragged": []}


def _guilty(exits: Sequence[Exit]) -> list[Exit]:
    """Return those that tell of a cause; else of one that others waited for; else of what was met there first."""
    causes = [e for e in exits if e.reason not in DRAGGED | SYMPTOMS]
    stopped = [e for e in exits if e.stopped]
    hung = [e for e in exits if e.reason == Reason.HANG and not e.waits]
    met = [e for e in exits if e.reason in SYMPTOMS]
    ended = [e for e in exits if e.reason not in CLEAN]
    return causes or stopped or hung or met or ended or list(exits)


def _failed(exits: Sequence[Exit], guilty: Sequence[Exit]) -> Verdict:
    """The first by time names the reason: what the others met was its consequence."""
    first = min(guilty, key=lambda e: (e.at, e.rank))
    reason = _reason(first, exits)
    detail = first.text or SENTENCES[first.reason]
    if reason == Reason.LINK_LOST:
        detail = f"{detail}; no rank and no node had failed: the link between them did"
    failure = {
        "node": first.node,
        "node_rank": first.rank,
        "rank": first.worker,
        "at": first.at,
        "dragged": [e.rank for e in exits if e.rank != first.rank and e.reason in DRAGGED | SYMPTOMS],
    }
    return Verdict(RunState.FAILED, reason, f"{_where(first)}: {detail}", failure)


def _reason(first: Exit, exits: Iterable[Exit]) -> Reason:
    if first.reason in CLEAN:
        return Reason.RANK_FAILED
    if first.stopped and first.reason in DRAGGED | SYMPTOMS:
        return Reason.HANG
    others = [e for e in exits if e.rank != first.rank]
    return Reason.LINK_LOST if first.reason == Reason.PEER_ENDED and others else first.reason


def _where(first: Exit) -> str:
    nodes = f"node {first.node} (rank {first.rank} of the nodes)"
    return nodes if first.worker is None else f"{nodes}, rank {first.worker}"
