"""PURE: what a failed save is to each rank: its own failure, one of its node, or a neighbour's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..endings import Ended
from ..spec.faults import Reason


@dataclass(frozen=True)
class Failure:
    """What one rank met in a save. `own`: it was that rank's own fault, not only told to it."""

    rank: int
    node: int
    reason: Reason
    text: str
    own: bool


def met(failures: Sequence[Failure], rank: int, node: int) -> Ended:
    """Return the end of `rank` on `node`: its own failure, else the first one's, which is a neighbour's elsewhere.

    Whichever rank of a node writes first how the node ended, it names the rank that failed and its reason.
    """
    own = [failure for failure in failures if failure.own]
    mine = next((failure for failure in own if failure.rank == rank), None)
    meant = mine or (own or failures)[0]
    elsewhere = meant.own and meant.node != node
    return Ended(Reason.PEER_ENDED if elsewhere else meant.reason, meant.text, meant.rank)
