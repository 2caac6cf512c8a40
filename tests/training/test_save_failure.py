"""A save that fails on one rank is that rank's failure on its node, and a neighbour's end on the others."""

from __future__ import annotations

import pytest

from training.saving.failure import Failure, met
from training.spec.faults import Reason

FULL = Failure(2, 1, Reason.DISK_FULL, "rank 2: disk full", own=True)
TOLD = Failure(0, 0, Reason.DISK_FULL, "rank 0: disk full", own=False)
BROKEN = Failure(3, 1, Reason.RANK_FAILED, "rank 3: broken", own=True)


@pytest.mark.parametrize(
    ("failures", "rank", "node", "reason", "whose"),
    [
        ([TOLD, FULL], 2, 1, "disk_full", 2),
        ([TOLD, FULL], 3, 1, "disk_full", 2),  # of the same node: whichever writes first, the node says the same
        ([TOLD, FULL], 0, 0, "peer_ended", 2),
        ([TOLD, FULL], 4, 2, "peer_ended", 2),
        ([FULL, BROKEN], 3, 1, "rank_failed", 3),
        ([TOLD], 1, 0, "disk_full", 0),  # nobody says it was his
    ],
)
def test_whose_it_is(failures: list[Failure], rank: int, node: int, reason: str, whose: int) -> None:
    end = met(failures, rank, node)
    assert (end.reason, end.rank) == (reason, whose)
