"""Rows that are stored many at once are those that were given, on SQLite and on PostgreSQL."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from webapp.runs import each
from webapp.runs.models import Attempt, Point, Series, Stream

from .test_journal import attempt, stream

__all__ = ["attempt"]  # a fixture

pytestmark = pytest.mark.django_db
NUMBERS = [0.1, 1e-308, 1.7976931348623157e308, -0.0, 123456789.123456789]


def series(attempt: Attempt) -> Series:
    return Series.objects.create(attempt=attempt, name="loss", axis="step")


def stored(of: Series) -> list[tuple[Any, ...]]:
    return list(Point.objects.filter(series=of).order_by("x").values_list("x", "value", "odd"))


def test_numbers_come_back_to_the_last_bit(attempt: Attempt) -> None:
    of = series(attempt)
    rows = [(of.pk, float(x), value, "") for x, value in enumerate(NUMBERS)]
    each.insert_each(Point, ("series_id", "x", "value", "odd"), [*rows, (of.pk, 9.0, None, "NaN")])
    assert [value for _, value, _ in stored(of)] == [*NUMBERS, None]
    assert stored(of)[-1] == (9.0, None, "NaN")


def test_a_row_that_is_there_gets_the_new_values(attempt: Attempt) -> None:
    of, columns = series(attempt), ("series_id", "x", "value", "odd")
    each.insert_each(Point, columns, [(of.pk, 1.0, 5.0, ""), (of.pk, 2.0, 6.0, "")], unique=("series_id", "x"))
    each.insert_each(Point, columns, [(of.pk, 2.0, None, "inf"), (of.pk, 3.0, 7.0, "")], unique=("series_id", "x"))
    assert stored(of) == [(1.0, 5.0, ""), (2.0, None, "inf"), (3.0, 7.0, "")]


def test_more_rows_than_go_at_once(attempt: Attempt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(each, "AT_ONCE", 3)
    of = series(attempt)
    each.insert_each(Point, ("series_id", "x", "value", "odd"), [(of.pk, float(x), 1.0, "") for x in range(7)])
    assert [x for x, *_ in stored(of)] == [0, 1, 2, 3, 4, 5, 6]


def test_whole_numbers_are_set_row_by_row(attempt: Attempt) -> None:
    one, two, kept = (stream(attempt, f"train@{rank}") for rank in range(3))
    each.update_each(Stream, ["offset", "last_seq"], [(2**62, 5, two.pk), (7, 2**53 + 1, one.pk)])
    each.update_each(Stream, ["offset", "last_seq"], [])
    rows = Stream.objects.filter(pk__in=(one.pk, two.pk, kept.pk)).order_by("source")
    assert list(rows.values_list("offset", "last_seq")) == [(7, 2**53 + 1), (2**62, 5), (0, 0)]


def test_times_keep_their_microseconds_and_texts_their_signs(attempt: Attempt) -> None:
    at = datetime(2026, 11, 30, 13, 5, 7, 123457, tzinfo=UTC)
    text = 'it\'s "so"; \\ % %s {} \u2028 \N{BOAR} \\u0041'
    columns = ("run_id", "number", "attempt_id", "source", "seq", "kind", "at", "received_at", "step", "data")
    data = each.json_value({"text": text, "n": 2**53 + 1, "list": [None, True, {}]})
    of = (attempt.run_id, 99, attempt.pk, "train@0", 1, "log", each.time_value(at), each.time_value(at), None, data)
    each.insert_each(attempt.events.model, columns, [of])
    event = attempt.events.get(number=99)
    assert (event.at, event.step) == (at, None)
    assert event.data == {"text": text, "n": 2**53 + 1, "list": [None, True, {}]}
