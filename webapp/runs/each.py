"""Many rows at once, each with its own values, without a model's object and its share of an SQL text for each.

Columns are named as the database has them; values are given as the database takes them. SQLite runs one prepared
statement row by row, with nothing between; PostgreSQL is asked once for many rows, since each question costs it more
than a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import connection, models

Rows = Sequence[Sequence[Any]]
AT_ONCE = 500  # rows a question


def update_each(model: type[models.Model], columns: Sequence[str], rows: Rows) -> None:
    """Set `columns` of every row of `rows` to whole numbers: these in this order, then the row's id, once in `rows`."""
    table = _quoted(model._meta.db_table)
    if connection.vendor == "sqlite":
        set_to = ", ".join(f"{_quoted(name)} = %s" for name in columns)
        return _execute(f"UPDATE {table} SET {set_to} WHERE id = %s", rows)  # noqa: S608
    set_to = ", ".join(f"{_quoted(name)} = new.{_quoted(name)}" for name in columns)
    listed = _listed([*columns, "id"])
    return _ask(f"UPDATE {table} SET {set_to} FROM (VALUES ", f") AS new ({listed}) WHERE {table}.id = new.id", rows)  # noqa: S608


def insert_each(model: type[models.Model], columns: Sequence[str], rows: Rows, *, unique: Sequence[str] = ()) -> None:
    """Insert `rows`; one that is there already, by its columns `unique`, gets the new values of the others.

    Of `rows` themselves no two may be the same by `unique`.
    """
    sql = f"INSERT INTO {_quoted(model._meta.db_table)} ({_listed(columns)}) VALUES "  # noqa: S608
    conflict = _conflict(columns, unique) if unique else ""
    if connection.vendor == "sqlite":
        return _execute(f"{sql}({', '.join(['%s'] * len(columns))}){conflict}", rows)
    return _ask(sql, conflict, rows)


def _conflict(columns: Sequence[str], unique: Sequence[str]) -> str:
    renewed = ", ".join(f"{_quoted(name)} = excluded.{_quoted(name)}" for name in columns if name not in unique)
    return f" ON CONFLICT ({_listed(unique)}) DO UPDATE SET {renewed}"


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


def _ask(before: str, behind: str, rows: Rows) -> None:
    """Run `before` (row), (row), ... `behind`, for some rows at a time."""
    with connection.cursor() as cursor:
        for first in range(0, len(rows), AT_ONCE):
            some = rows[first : first + AT_ONCE]
            one = f"({', '.join(['%s'] * len(some[0]))})"
            cursor.execute(f"{before}{', '.join([one] * len(some))}{behind}", [value for row in some for value in row])
