"""The benchmark's arithmetic, and what its last lines say."""

from __future__ import annotations

import pytest

from .figures import percentile, verdict
from .live.told import tell
from .watch import overheads, uncertainty


@pytest.mark.parametrize(("share", "expected"), [(0.99, 198), (0.5, 100), (1.0, 200), (0.0, 1)])
def test_percentile_is_one_of_the_values(share: float, expected: int) -> None:
    assert percentile([float(n) for n in range(200, 0, -1)], share) == expected


def test_a_line_ends_with_its_goal_and_whether_it_holds() -> None:
    line, holds = verdict("median", [90.0, 100.0, 400.0], 100, [0.5, 1.2])
    assert holds
    assert line.startswith("median: 100 ms (3 runs: 90 to 400; load average 0.5 to 1.2 on ")
    assert line.endswith("goal 100 ms: holds")


def test_a_goal_that_is_missed_is_said() -> None:
    line, holds = verdict("median", [101.0], 100, [1.0])
    assert not holds
    assert line.endswith("goal 100 ms: falls short")


def test_the_cost_of_being_watched_sets_neighbours_against_each_other() -> None:
    """The machine is twice as slow from the third block on; a block that is cut short is left out."""
    steps = [(True, 1.1), (True, 1.1), (False, 1.0), (False, 1.0), (False, 2.0), (False, 2.0), (True, 2.2), (True, 2.2)]
    assert overheads([*steps, (True, 9.0)], 2) == pytest.approx([10, 10])


def test_a_median_of_scattered_pairs_is_uncertain() -> None:
    assert uncertainty([1.0] * 20) == 0
    assert uncertainty([-40.0, -20.0, 0.0, 20.0, 40.0] * 4) > 5


def test_a_figure_holds_where_each_of_its_goals_does(capsys: pytest.CaptureFixture[str]) -> None:
    values = [float(n) for n in range(1, 201)]
    assert tell("line", values, {"99th percentile": 199}, "200 lines")
    assert not tell("line", values, {"mean": 101, "99th percentile": 198}, "200 lines")
    held, missed = capsys.readouterr().out.splitlines()
    assert held.startswith("line: median 100 ms, 99th percentile 198 ms (200 lines; load average ")
    assert held.endswith("goal 99th percentile below 199 ms: holds")
    assert missed.endswith("goal mean below 101 ms, 99th percentile below 198 ms: falls short")
