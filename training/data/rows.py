"""Rows: JSON Lines, checked line by line on the way.

Only the columns that training uses are kept, so that no column is guessed from the first rows and none appears
that the file did not have. Memory stays flat: a row is read when it is asked for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..spec.lint import Problem, Refused
from ..spec.sections.data import Data

BOM = b"\xef\xbb\xbf"
Row = dict[str, Any]


class BadData(Refused):
    """A data file that can't be trained on."""


def read_rows(path: str, data: Data) -> Iterator[tuple[int, Row]]:
    """Yield (line from 1, row) of `path`; blank lines are none. Raises BadData with file and line.

    Columns: `messages` (role and content), `prompt` and `completion`, or `text`.
    """
    try:
        file = open(path, "rb")  # noqa: SIM115  closed below; only its opening is a matter of the path
    except OSError as error:
        raise bad(path, 0, error.strerror or str(error), "Put the data set on this node again.") from None
    with file:
        for number, line in enumerate(file, 1):
            text = line.removeprefix(BOM) if number == 1 else line
            if text.strip():
                yield number, _row(path, number, _decoded(path, number, text), data)


def _row(path: str, number: int, row: Row, data: Data) -> Row:
    if data.format == "messages":
        return {"messages": _messages(path, number, row)}
    if data.format == "prompt-completion":
        return {key: _string(path, number, row, key) for key in ("prompt", "completion")}
    return {"text": _string(path, number, row, data.text_field)}


def _decoded(path: str, number: int, line: bytes) -> Row:
    try:
        row = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise bad(path, number, f"byte {error.start + 1} is not UTF-8", "Save the file as UTF-8.") from None
    except ValueError as error:
        raise bad(path, number, f"it is not JSON: {error}", "Write one JSON object a line.") from None
    except RecursionError:
        raise bad(path, number, "it is nested too deeply", "Write one JSON object a line.") from None
    if not isinstance(row, dict):
        raise bad(path, number, f"expected an object, found {type(row).__name__}", "Write one JSON object a line.")
    return row


def _messages(path: str, number: int, row: Row) -> list[dict[str, str]]:
    turns = row.get("messages")
    if not isinstance(turns, list) or not turns:
        raise bad(path, number, "it has no list `messages`", "Give each row role/content turns, or choose text.")
    if not all(isinstance(turn, dict) for turn in turns):
        raise bad(path, number, "a turn in `messages` is no object", "Write turns as role and content.")
    return [{key: _string(path, number, turn, key) for key in ("role", "content")} for turn in turns]


def _string(path: str, number: int, row: Row, field: str) -> str:
    value = row.get(field)
    if not isinstance(value, str):
        found = "nothing" if value is None else type(value).__name__
        raise bad(path, number, f"`{field}` should be text, found {found}", "Mend the row or leave it out.")
    try:
        value.encode()
    except UnicodeEncodeError:  # JSON may write one half alone, which no tokenizer takes
        raise bad(path, number, f"`{field}` holds half of a character", "Mend the row or leave it out.") from None
    return value


def bad(path: str, number: int, reason: str, fix: str) -> BadData:
    """Return the error that names file and line (0: the file as a whole)."""
    where = f"{Path(path).name}, line {number}" if number else Path(path).name
    return BadData([Problem("data", f"{where}: {reason}", fix)])
