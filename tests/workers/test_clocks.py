"""A node's clock against ours."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from workers.end.clocks import lead

NOW = datetime(2024, 1, 1, tzinfo=UTC)


def pairs(lead_seconds: float, *delays: float) -> list[tuple[datetime, datetime]]:
    rows = [(NOW + timedelta(seconds=i), delay) for i, delay in enumerate(delays)]
    return [(at + timedelta(seconds=lead_seconds), at + timedelta(seconds=delay)) for at, delay in rows]


def test_the_fastest_line_tells() -> None:
    assert lead(pairs(90.0, 0.01, 3.0, 600.0)) == 89.99
    assert lead(pairs(-5.0, 2.0, 0.0)) == -5.0


def test_without_lines_no_lead_is_assumed() -> None:
    assert lead([]) == 0.0
