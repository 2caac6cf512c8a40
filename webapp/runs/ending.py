"""The end of a run as its page shows it: what each node has said of what is left there."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from webapp.show import why

from . import proof
from .models import Attempt, Placement, Run
from .states import RunState


@dataclass(frozen=True)
class NodeEnd:
    """One node. `proven`: nothing of the attempt is left there; `at`: since when `text` holds, as far as known."""

    name: str
    proven: bool
    text: str
    at: datetime | None = None


def ending(run: Run) -> dict[str, object]:
    """Return the nodes of a run that is stopping or over; none while there is nothing to prove.

    That one which has finished by itself is gone is no news: only where it isn't proven, it is.
    """
    attempt = run.attempt
    shown = attempt is not None and (run.state == RunState.STOPPING or attempt.ended_at)
    nodes = _nodes(attempt) if shown and attempt else []
    if run.state == RunState.SUCCEEDED and all(node.proven for node in nodes):
        nodes = []
    return {
        "nodes": nodes,
        "proven": all(node.proven for node in nodes),
        "hurried": bool(attempt and attempt.stop_now_at),
    }


def _nodes(attempt: Attempt) -> list[NodeEnd]:
    rows = attempt.placements.exclude(prepared_at=None).select_related("node")
    return [_node(attempt, placement) for placement in rows]


def _node(attempt: Attempt, placement: Placement) -> NodeEnd:
    name, told = placement.node.name, proof.sentence(placement.proof) if placement.proof else ""
    if placement.proven_gone_at:
        return NodeEnd(name, True, told or "no process left", placement.proven_gone_at)
    if placement.unreachable_since:
        return NodeEnd(
            name, False, "it can't be reached, so what is left there is not known", placement.unreachable_since
        )
    if told:
        return NodeEnd(name, False, told)
    if placement.exit:
        return NodeEnd(name, False, f"ended, not looked at yet: {why(str(placement.exit.get('reason')))}")
    if placement.stop_told_at and not attempt.stop_now_at:
        return NodeEnd(name, False, "told to finish its step, save and end", placement.stop_told_at)
    return NodeEnd(name, False, "being ended" if attempt.stop_now_at else "not told to stop yet")
