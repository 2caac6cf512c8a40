"""How often a page is sent to: ten times a second, a lone message at once."""

from __future__ import annotations

import itertools

import pytest

from webapp.runs.pace import Pace


def sent(wished: list[float]) -> list[float]:
    """Return when messages go that could go at these times, each once the one before has gone."""
    pace, now, times = Pace(), 0.0, []
    for wish in wished:
        now = max(now, wish)
        now += pace.wait(now)
        pace.sent(now)
        times.append(round(now, 6))
    return times


def test_a_lone_message_goes_at_once() -> None:
    assert sent([5.0, 6.0, 7.5]) == [5.0, 6.0, 7.5]


def test_many_go_at_ten_a_second() -> None:
    times = sent([100.0] * 200)
    assert times[:4] == [100.0, 100.0, 100.0, 100.1]
    assert times[-1] == pytest.approx(119.7)
    assert all(later - earlier >= 0.0999 for earlier, later in itertools.pairwise(times[2:]))


def test_a_late_line_delays_none_of_those_behind_it() -> None:
    """Ten a second, some up to 80 ms late: with a fixed pause all that follow the first such one would be as late."""
    late = [0.0, 0.08, 0.0, 0.03, 0.08, 0.0, 0.05, 0.0]
    wished = [10 + step / 10 + late[step % len(late)] for step in range(400)]
    assert sent(wished) == [pytest.approx(wish) for wish in wished]
