"""Rows: JSON Lines to the data set that SFTTrainer reads, checked line by line on the way.

Only the columns that training uses are kept, as text, so that no column is guessed from the first rows and
none appears that the file did not have. Rows are written to an Arrow cache beside the file: memory stays
flat, and every rank and every later attempt reads what the first one made.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from datasets import Dataset, Features, Value
from datasets.exceptions import DatasetGenerationError

from .spec.lint import Problem, Refused
from .spec.sections.data import Data

BOM = b"\xef\xbb\xbf"
MESSAGE = [{"role": Value("string"), "content": Value("string")}]


class BadData(Refused):
    """A data file that can't be trained on."""


def load(path: str, data: Data) -> Dataset:
    """Return the rows of the JSON Lines file `path`.

    Columns: `messages` (a list of role, content) or `text`. Raises BadData with file and line.
    """
    features = Features({"messages": MESSAGE} if data.format == "messages" else {"text": Value("string")})
    settings = {"path": path, "format": data.format, "text_field": data.text_field, "stamp": _stamp(path)}
    if next(read_rows(**settings), None) is None:
        raise bad(path, 0, "it has no rows", "Upload a file with at least one row.")
    try:
        return Dataset.from_generator(
            read_rows, features=features, gen_kwargs=settings, cache_dir=str(Path(path).parent / "cache")
        )
    except DatasetGenerationError as error:
        raise (error.__cause__ if isinstance(error.__cause__, BadData) else error) from None


def _stamp(path: str) -> str:
    """Return what tells this file from another that stood under its name, so that no stale cache is read."""
    try:
        found = Path(path).stat()
    except OSError as error:
        raise bad(path, 0, error.strerror or str(error), "Put the data set on this node again.") from None
    return f"{found.st_size} {found.st_mtime_ns}"


def read_rows(path: str, format: str, text_field: str, stamp: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of `path` as training reads them; raise BadData at the first that it can't.

    `stamp` only tells caches apart.
    """
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            text = line.removeprefix(BOM) if number == 1 else line
            if text.strip():
                row = _decoded(path, number, text)
                yield (
                    {"messages": _messages(path, number, row)}
                    if format == "messages"
                    else {"text": _string(path, number, row, text_field)}
                )


def _decoded(path: str, number: int, line: bytes) -> dict[str, Any]:
    try:
        row = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise bad(path, number, f"byte {error.start + 1} is not UTF-8", "Save the file as UTF-8.") from None
    except ValueError as error:
        raise bad(path, number, f"it is not JSON: {error}", "Write one JSON object a line.") from None
    if not isinstance(row, dict):
        raise bad(path, number, f"expected an object, found {type(row).__name__}", "Write one JSON object a line.")
    return row


def _messages(path: str, number: int, row: dict[str, Any]) -> list[dict[str, str]]:
    turns = row.get("messages")
    if not isinstance(turns, list) or not turns:
        raise bad(path, number, "it has no list `messages`", "Give each row role/content turns, or choose text.")
    if not all(isinstance(turn, dict) for turn in turns):
        raise bad(path, number, "a turn in `messages` is no object", "Write turns as role and content.")
    return [{key: _string(path, number, turn, key) for key in ("role", "content")} for turn in turns]


def _string(path: str, number: int, row: dict[str, Any], field: str) -> str:
    value = row.get(field)
    if not isinstance(value, str):
        found = "nothing" if value is None else type(value).__name__
        raise bad(path, number, f"`{field}` should be text, found {found}", "Mend the row or leave it out.")
    return value


def bad(path: str, number: int, reason: str, fix: str) -> BadData:
    """Return the error that names file and line (0: the file as a whole)."""
    where = f"{Path(path).name}, line {number}" if number else Path(path).name
    return BadData([Problem("data", f"{where}: {reason}", fix)])
