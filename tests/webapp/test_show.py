"""How values are shown."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from webapp.show import NOTHING, age, fact, size, sparkline, words


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (134515008, "134,515,008"),
        (2, "2"),
        (None, NOTHING),
        ("", NOTHING),
        ("sdpa", "sdpa"),
        (True, "True"),
        (0.5, "0.5"),
    ],
)
def test_a_fact_reads_like_one(value: object, shown: str) -> None:
    assert fact(value) == shown


@pytest.mark.parametrize(
    ("gone", "shown"),
    [(4, "just now"), (179, "2 min ago"), (-90 * 86400 + 1, "in 90 d"), (-29, "in 29 s"), (-3599, "in 60 min")],
)
def test_an_age_is_whole_units_and_a_time_to_come_the_nearest(gone: int, shown: str) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert age(now - timedelta(seconds=gone), now) == shown


def test_a_name_is_words() -> None:
    assert words("master_dtype") == "master dtype"


@pytest.mark.parametrize(("count", "shown"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (2_430_000_000, "2.43 GB")])
def test_bytes_are_counted_as_disks_count(count: int, shown: str) -> None:
    assert size(count) == shown


def test_a_small_curve_is_broken_where_a_value_is_missing() -> None:
    assert 'd="M0.0 19.0 26.7 10.0 M80.0 1.0"' in sparkline([1, 2, None, 3])
    assert sparkline([None, 1]) == ""
