"""What exits mean, as tables of histories."""

from __future__ import annotations

import pytest

from training.spec.faults import Reason as R
from webapp.runs.states import RunState as S
from workers.end import outcome


def history(*parts: tuple[R, float]) -> list[outcome.Exit]:
    return [outcome.Exit(f"n{rank}", rank, reason, f"said {reason}", at) for rank, (reason, at) in enumerate(parts)]


@pytest.mark.parametrize(
    ("parts", "state", "reason", "node"),
    [
        ([(R.COMPLETED, 1), (R.COMPLETED, 2)], S.SUCCEEDED, R.COMPLETED, ""),
        ([(R.RANK_FAILED, 5), (R.OUT_OF_GPU_MEMORY, 4)], S.FAILED, R.OUT_OF_GPU_MEMORY, "n1"),
        ([(R.PEER_ENDED, 1), (R.KILLED_BY_HOST, 2)], S.FAILED, R.KILLED_BY_HOST, "n1"),
        ([(R.STOPPED_UNSAVED, 1), (R.DISK_FULL, 2)], S.FAILED, R.DISK_FULL, "n1"),
        ([(R.COMPLETED, 1), (R.SUPERVISOR_LOST, 9)], S.FAILED, R.SUPERVISOR_LOST, "n1"),
        # no rank and no node had failed: it is the link
        ([(R.PEER_ENDED, 2), (R.PEER_ENDED, 1)], S.FAILED, R.LINK_LOST, "n1"),
        ([(R.PEER_ENDED, 2), (R.STOPPED_UNSAVED, 1)], S.FAILED, R.LINK_LOST, "n0"),
        ([(R.PEER_ENDED, 1)], S.FAILED, R.PEER_ENDED, "n0"),
        ([(R.COLLECTIVE_TIMEOUT, 1), (R.NODE_LOST, 9)], S.FAILED, R.NODE_LOST, "n1"),
        ([(R.HANG, 1), (R.ASSERTION, 9)], S.FAILED, R.ASSERTION, "n1"),
        ([(R.STOPPED, 2), (R.STOPPED, 1)], S.STOPPED, R.STOPPED, ""),
        # only the first node's ranks know why all saved
        ([(R.TIME_LIMIT, 2), (R.COMPLETED, 1)], S.STOPPED, R.TIME_LIMIT, ""),
        ([(R.TIME_LIMIT, 1), (R.DISK_FULL, 2)], S.FAILED, R.DISK_FULL, "n1"),
        ([(R.STOPPED_UNSAVED, 2), (R.STOPPED, 1)], S.FAILED, R.STOPPED_UNSAVED, "n0"),
    ],
)
def test_how_a_run_ends_that_nobody_stopped(parts, state: S, reason: R, node: str) -> None:
    verdict = outcome.of_ended(history(*parts))
    assert (verdict.state, verdict.reason) == (state, reason)
    assert node in verdict.text


@pytest.mark.parametrize(
    ("parts", "state", "reason"),
    [
        ([(R.STOPPED, 1), (R.STOPPED, 2)], S.STOPPED, R.STOPPED),
        ([(R.COMPLETED, 1), (R.COMPLETED, 2)], S.SUCCEEDED, R.COMPLETED),
        ([(R.COMPLETED, 1), (R.STOPPED, 2)], S.STOPPED, R.STOPPED),
        ([(R.TIME_LIMIT, 1), (R.COMPLETED, 2)], S.STOPPED, R.STOPPED),
        ([(R.STOPPED, 1), (R.STOPPED_UNSAVED, 2)], S.STOPPED, R.STOPPED_UNSAVED),
        ([(R.KILLED_BY_HOST, 1), (R.RANK_FAILED, 2)], S.STOPPED, R.STOPPED_UNSAVED),
        ([(R.STOPPED_UNSAVED, 1), (R.DISK_FULL, 2)], S.FAILED, R.DISK_FULL),
    ],
)
def test_how_a_run_ends_that_was_asked_to_stop(parts, state: S, reason: R) -> None:
    verdict = outcome.of_stopped(history(*parts))
    assert (verdict.state, verdict.reason) == (state, reason)


def test_a_clock_that_leads_does_not_change_who_was_first() -> None:
    """Node 1 failed first; its clock is 90 s ahead, so its own time looks later."""
    first = outcome.read("n1", 1, {"reason": "disk_full", "at": 1090.0}, offset=90.0)
    second = outcome.read("n0", 0, {"reason": "rank_failed", "at": 1001.0}, offset=0.0)
    assert outcome.of_ended([second, first]).reason == R.DISK_FULL


def test_an_exit_that_says_nothing_known_is_a_failure() -> None:
    found = outcome.read("n0", 0, {"reason": "vapour"}, offset=0.0)
    assert outcome.of_ended([found]).reason == R.RANK_FAILED


def said(node: int, reason: R, at: float, **evidence: object) -> outcome.Exit:
    return outcome.read(f"n{node}", node, {"reason": reason, "at": at, "evidence": evidence, "rank": node}, offset=0.0)


def test_of_a_hang_the_rank_that_waits_for_nobody_is_named() -> None:
    waiting = said(0, R.HANG, 1, hanging=[{"waits": True}])
    verdict = outcome.of_ended([waiting, said(1, R.HANG, 2, hanging=[{"waits": False}, {"waits": True}])])
    assert (verdict.reason, verdict.failure["node"], verdict.failure["rank"]) == (R.HANG, "n1", 1)
    assert verdict.failure["dragged"] == [0]


def test_a_stopped_rank_is_named_whatever_the_others_met() -> None:
    """The others waited for it until they had enough; its own node was then ended by us."""
    stopped = said(1, R.STOPPED_UNSAVED, 9, stopped={"1": 4711})
    verdict = outcome.of_ended([said(0, R.COLLECTIVE_TIMEOUT, 1), stopped])
    assert (verdict.reason, verdict.failure["node"]) == (R.HANG, "n1")
