"""Many rows at once, each with its own values, without a model's object and its share of an SQL text for each.

Columns are named as the database has them; values are given as the database takes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import connection, models

Rows = Sequence[Sequence[Any]]


def update_each(model: type[models.Model], columns: Sequence[str], rows: Rows) -> None:
    """Set `columns` of every row of `rows`: values in this order, then the row's id."""
    set_to = ", ".join(f"{_quoted(name)} = %s" for name in columns)
    _execute(f"UPDATE {_quoted(model._meta.db_table)} SET {set_to} WHERE id = %s", rows)  # noqa: S608


def insert_each(model: type[models.Model], columns: Sequence[str], rows: Rows, *, unique: Sequence[str] = ()) -> None:
    """Insert `rows`; one that is there already, by its columns `unique`, gets the new values of the others."""
    places = ", ".join(["%s"] * len(columns))
    sql = f"INSERT INTO {_quoted(model._meta.db_table)} ({_listed(columns)}) VALUES ({places})"  # noqa: S608
    if unique:
        others = [_quoted(name) for name in columns if name not in unique]
        renewed = ", ".join(f"{name} = excluded.{name}" for name in others)
        sql += f" ON CONFLICT ({_listed(unique)}) DO UPDATE SET {renewed}"
    _execute(sql, rows)


def time_value(time: datetime) -> Any:
    return connection.ops.adapt_datetimefield_value(time)


def json_value(value: Any) -> Any:
    return connection.ops.adapt_json_value(value, None)


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(map(_quoted, columns))


def _quoted(name: str) -> str:
    return str(connection.ops.quote_name(name))


def _execute(sql: str, rows: Rows) -> None:
    if rows:
        with connection.cursor() as cursor:
            cursor.executemany(sql, rows)
