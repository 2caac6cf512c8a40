"""PURE: what the exits of a job's nodes mean for the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from training.spec.faults import SENTENCES, Reason
from webapp.runs.states import RunState

CLEAN = frozenset({Reason.COMPLETED, Reason.STOPPED, Reason.TIME_LIMIT})
# What a node says when it only was dragged along, or when we ended it.
DRAGGED = CLEAN | {Reason.PEER_ENDED, Reason.STOPPED_UNSAVED}
# In a stop these are faults of their own; the others are what an impatient end looks like.
FAULTS = frozenset(
    {
        Reason.NON_FINITE,
        Reason.OUT_OF_GPU_MEMORY,
        Reason.DISK_FULL,
        Reason.DATA,
        Reason.CHECKPOINT,
        Reason.CONFIGURATION,
    }
)


@dataclass(frozen=True)
class Exit:
    """How one node's part ended. `at`: seconds since the epoch by our own clock."""

    node: str
    rank: int
    reason: Reason
    text: str
    at: float


@dataclass(frozen=True)
class Verdict:
    state: RunState
    reason: Reason
    text: str


def read(node: str, rank: int, exit: dict[str, Any], offset: float) -> Exit:
    """Return the exit that a node wrote; `offset` is its clock's lead in seconds."""
    try:
        reason = Reason(exit.get("reason", ""))
    except ValueError:
        reason = Reason.RANK_FAILED
    return Exit(node, rank, reason, str(exit.get("text", "")), float(exit.get("at") or 0.0) - offset)


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
    guilty = [e for e in exits if e.reason not in DRAGGED] or [e for e in exits if e.reason not in CLEAN]
    return _failed(guilty or exits)


def of_stopped(exits: Sequence[Exit]) -> Verdict:
    """Return how a run ends that was asked to stop."""
    reasons = {e.reason for e in exits}
    if reasons == {Reason.COMPLETED}:
        return Verdict(RunState.SUCCEEDED, Reason.COMPLETED, "finished before the stop took hold")
    if faulty := [e for e in exits if e.reason in FAULTS]:
        return _failed(faulty)
    reason = Reason.STOPPED if reasons <= CLEAN else Reason.STOPPED_UNSAVED
    return Verdict(RunState.STOPPED, reason, SENTENCES[reason])


def _failed(exits: Sequence[Exit]) -> Verdict:
    """The first by time names the reason: what the others met was its consequence."""
    first = min(exits, key=lambda e: (e.at, e.rank))
    detail = first.text or SENTENCES[first.reason]
    reason = Reason.RANK_FAILED if first.reason in CLEAN else first.reason
    return Verdict(RunState.FAILED, reason, f"node {first.node} (rank {first.rank} of the nodes): {detail}")
