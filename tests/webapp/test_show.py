"""How values are shown."""

from __future__ import annotations

import pytest

from webapp.show import NOTHING, fact, size, words


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


def test_a_name_is_words() -> None:
    assert words("master_dtype") == "master dtype"


@pytest.mark.parametrize(("count", "shown"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (2_430_000_000, "2.43 GB")])
def test_bytes_are_counted_as_disks_count(count: int, shown: str) -> None:
    assert size(count) == shown
