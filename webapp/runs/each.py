"""Many rows at once, each with its own values, without a model's object and its share of an SQL text for each.

Columns are named as the database has them; values are given as the database takes them. SQLite runs one prepared
statement row by row, with nothing between. PostgreSQL is asked once for many rows, since each question costs it more
than a row: they are copied in, or where rows may be there already come as one text of JSON, because psycopg takes
longer to put a value for every placeholder than PostgreSQL to store the rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from django.db import connection, models

Rows = Sequence[Sequence[Any]]
AT_ONCE = 2000  # rows a question


def update_each(model: type[models.Model], columns: Sequence[str], rows: Rows) -> None:
    """Set `columns` of every row of `rows` to whole numbers: these in this order, then the row's id, once in `rows`."""
    table = _quoted(model._meta.db_table)
    if connection.vendor == "sqlite":
        set_to = ", ".join(f"{_quoted(name)} = %s" for name in columns)
        return _execute(f"UPDATE {table} SET {set_to} WHERE id = %s", rows)  # noqa: S608
    set_to = ", ".join(f"{_quoted(name)} = new.{_quoted(name)}" for name in columns)
    named = [*columns, "id"]
    sql = f"UPDATE {table} SET {set_to} FROM {_listing(model, named)} WHERE {table}.id = new.id"  # noqa: S608
    return _ask(sql, named, rows)


def raise_each(model: type[models.Model], ruling: str, columns: Sequence[str], rows: Rows) -> None:
    """Set `ruling` and `columns` of each row, unless its `ruling` is past the new one: rows are (id, ruling, ...)."""
    table, named = _quoted(model._meta.db_table), ["id", ruling, *columns]
    held = f"{table}.{_quoted(ruling)}"
    if connection.vendor == "sqlite":
        set_to = ", ".join(f"{_quoted(name)} = %s" for name in named[1:])
        sql = f"UPDATE {table} SET {set_to} WHERE id = %s AND ({held} IS NULL OR {held} <= %s)"  # noqa: S608
        return _execute(sql, [(*row[1:], row[0], row[1]) for row in rows])
    set_to = ", ".join(f"{_quoted(name)} = new.{_quoted(name)}" for name in named[1:])
    past = f"({held} IS NULL OR {held} <= new.{_quoted(ruling)})"
    sql = f"UPDATE {table} SET {set_to} FROM {_listing(model, named)} WHERE {table}.id = new.id AND {past}"  # noqa: S608
    return _ask(sql, named, rows)


def insert_each(model: type[models.Model], columns: Sequence[str], rows: Rows, *, unique: Sequence[str] = ()) -> None:
    """Insert `rows`; one that is there already, by its columns `unique`, gets the new values of the others.

    Of `rows` themselves no two may be the same by `unique`.
    """
    sql = f"INSERT INTO {_quoted(model._meta.db_table)} ({_listed(columns)})"
    conflict = _conflict(columns, unique) if unique else ""
    if connection.vendor == "sqlite":
        return _execute(f"{sql} VALUES ({', '.join(['%s'] * len(columns))}){conflict}", rows)
    if not unique:
        return _copy(f"COPY {_quoted(model._meta.db_table)} ({_listed(columns)}) FROM STDIN", rows)
    types = {field.column: field.rel_db_type(connection) for field in model._meta.concrete_fields}
    taken = ", ".join(f"{_quoted(name)}::{types[name]}" for name in columns)
    return _ask(f"{sql} SELECT {taken} FROM {_listing(model, columns)}{conflict}", columns, rows)  # noqa: S608


def _conflict(columns: Sequence[str], unique: Sequence[str]) -> str:
    renewed = ", ".join(f"{_quoted(name)} = excluded.{_quoted(name)}" for name in columns if name not in unique)
    return f" ON CONFLICT ({_listed(unique)}) DO UPDATE SET {renewed}"


def time_values(times: Iterable[datetime]) -> list[str]:
    """Return times of UTC."""
    texts = [str(time) for time in times]
    return [text.removesuffix("+00:00") for text in texts] if connection.vendor == "sqlite" else texts


def json_value(value: Any) -> str:
    return json.dumps(value)


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(map(_quoted, columns))


def _quoted(name: str) -> str:
    return str(connection.ops.quote_name(name))


def _execute(sql: str, rows: Rows) -> None:
    if rows:
        with connection.cursor() as cursor:
            cursor.executemany(sql, rows)


def _listing(model: type[models.Model], columns: Sequence[str]) -> str:
    """Return the SQL of a table of these columns, which is given as JSON; what is JSON itself in there is text."""
    types = {field.column: field.rel_db_type(connection) for field in model._meta.concrete_fields}
    given = {name: "text" if types[name] == "jsonb" else types[name] for name in columns}
    return f"json_to_recordset(%s) AS new ({', '.join(f'{_quoted(name)} {given[name]}' for name in columns)})"


def _ask(sql: str, columns: Sequence[str], rows: Rows) -> None:
    """Run `sql`, which takes `_listing`, for some rows at a time."""
    with connection.cursor() as cursor:
        for first in range(0, len(rows), AT_ONCE):
            named = [dict(zip(columns, row, strict=True)) for row in rows[first : first + AT_ONCE]]
            cursor.execute(sql, [json.dumps(named, default=str)])


def _copy(sql: str, rows: Rows) -> None:
    if rows:
        with connection.cursor() as cursor, connection.wrap_database_errors, cursor.copy(sql) as copy:
            for row in rows:
                copy.write_row(row)
