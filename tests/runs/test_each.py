"""Rows that are stored many at once are those that were given, on SQLite and on PostgreSQL."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from webapp.runs import each
from webapp.runs.models import Attempt, Chunk, Series, Stream

from .test_journal import attempt, stream

__all__ = ["attempt"]  # a fixture

pytestmark = pytest.mark.django_db
NUMBERS = [0.1, 1e-308, 1.7976931348623157e308, -0.0, 123456789.123456789]


COLUMNS = ("attempt_id", "name", "axis", "last_x", "last_value", "last_odd")


def row(attempt: Attempt, name: str, *last: Any) -> tuple[Any, ...]:
    return attempt.pk, name, "step", *last


def stored() -> list[tuple[Any, ...]]:
    return list(Series.objects.order_by("name").values_list("name", "last_x", "last_value", "last_odd"))


def test_numbers_come_back_to_the_last_bit(attempt: Attempt) -> None:
    rows = [row(attempt, str(x), float(x), value, "") for x, value in enumerate(NUMBERS)]
    each.insert_each(Series, COLUMNS, [*rows, row(attempt, "9", 9.0, None, "NaN")])
    assert [value for _, _, value, _ in stored()] == [*NUMBERS, None]
    assert stored()[-1] == ("9", 9.0, None, "NaN")


def test_a_row_that_is_there_gets_the_new_values(attempt: Attempt) -> None:
    unique = ("attempt_id", "name")
    each.insert_each(Series, COLUMNS, [row(attempt, "a", 1.0, 5.0, ""), row(attempt, "b", 2.0, 6.0, "")], unique=unique)
    each.insert_each(
        Series, COLUMNS, [row(attempt, "b", 2.0, None, "inf"), row(attempt, "c", 3.0, 7.0, "")], unique=unique
    )
    assert stored() == [("a", 1.0, 5.0, ""), ("b", 2.0, None, "inf"), ("c", 3.0, 7.0, "")]


def test_a_row_is_moved_on_but_never_back(attempt: Attempt) -> None:
    each.insert_each(Series, COLUMNS, [row(attempt, "a", None, None, ""), row(attempt, "b", 5.0, 1.0, "")])
    one, two = Series.objects.order_by("name").values_list("pk", flat=True)
    each.raise_each(Series, "last_x", ("last_value", "last_odd"), [(one, 3.0, None, "NaN"), (two, 4.0, 9.0, "")])
    assert stored() == [("a", 3.0, None, "NaN"), ("b", 5.0, 1.0, "")]
    each.raise_each(Series, "last_x", ("last_value", "last_odd"), [(two, 5.0, 2.0, ""), (one, 3.5, 0.0, "")])
    assert stored() == [("a", 3.5, 0.0, ""), ("b", 5.0, 2.0, "")]


def test_bytes_come_back(attempt: Attempt) -> None:
    of = Series.objects.create(attempt=attempt, name="loss", axis="step")
    body = bytes(range(256))
    columns = ("series_id", "level", "loose", "first", "last", "count", "body")
    each.insert_each(Chunk, columns, [(of.pk, 1, False, 0.0, 1.0, 2, body), (of.pk, 0, True, 0.0, 1.0, 2, b"")])
    rows = Chunk.objects.order_by("-level").values_list("body", "loose", "level")
    assert [(bytes(found), *rest) for found, *rest in rows] == [(body, False, 1), (b"", True, 0)]


def test_more_rows_than_go_at_once(attempt: Attempt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(each, "AT_ONCE", 3)
    each.insert_each(Series, COLUMNS, [row(attempt, str(x), float(x), 1.0, "") for x in range(7)])
    assert [x for _, x, *_ in stored()] == [0, 1, 2, 3, 4, 5, 6]


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
    of = (attempt.run_id, 99, attempt.pk, "train@0", 1, "log", *each.time_values([at, at]), None, data)
    each.insert_each(attempt.events.model, columns, [of])
    event = attempt.events.get(number=99)
    assert (event.at, event.step) == (at, None)
    assert event.data == {"text": text, "n": 2**53 + 1, "list": [None, True, {}]}
