"""One line of an uploaded file against our schema. Nothing is guessed, replaced or padded.

messages: {"messages": [{"role": "system" | "user" | "assistant" | "tool", "content": "..."}, ...]}, with something for
the model to say. prompt-completion: {"prompt": "...", "completion": "..."}, with something to complete. text:
{"text": "..."}, under that key or `content`.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NoReturn

from training.spec.lint import Problem

ROLES = ("system", "user", "assistant", "tool")
TEXT_FIELDS = ("text", "content")
NAMES = {dict: "an object", list: "a list", str: "text", bool: "a boolean", int: "a number", float: "a number"}


class BadRow(ValueError):
    """Why a line is no row: the field, what was expected, what was found."""

    def __init__(self, field: str, expected: str, found: str):
        self.field, self.expected, self.found = field, expected, found
        super().__init__(f"{field}: expected {expected}, found {found}")

    def problem(self, file: str, line: int) -> Problem:
        where = f"{file}, line {line}" + (f", {self.field}" if self.field else "")
        return Problem(where, f"expected {self.expected}, found {self.found}", "Mend the line or leave it out.")


@dataclass(frozen=True)
class Shape:
    """What the rows of a data set are. `keys`: the columns that are kept."""

    format: str
    keys: tuple[str, ...]


CHAT = Shape("messages", ("messages",))
PAIR = Shape("prompt-completion", ("prompt", "completion"))


@dataclass
class Tally:
    """What was read: kept rows, turns by role, keys that were left out."""

    rows: int = 0
    blank: int = 0
    roles: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)


def shape_of(row: dict[str, Any]) -> Shape:
    """Return what a data set is whose first row is `row`; raise BadRow where it is none of ours."""
    for shape in (CHAT, *(Shape("text", (key,)) for key in TEXT_FIELDS), PAIR):
        if all(key in row for key in shape.keys):
            return shape
    keys = ", ".join(map(repr, list(row)[:10])) or "none"
    raise BadRow("", "a key `messages`, `text` or `content`, or the keys `prompt` and `completion`", f"the keys {keys}")


def decode(line: bytes) -> dict[str, Any]:
    """Return the JSON object of a line; raise BadRow."""
    try:
        row = json.loads(line.rstrip(b"\r\n").decode("utf-8"), parse_constant=_no_constant, object_pairs_hook=_unique)
    except UnicodeDecodeError as error:
        shown = line[error.start : error.start + 4].hex(" ")
        raise BadRow(f"column {error.start + 1}", "UTF-8", f"the bytes {shown}") from None
    except json.JSONDecodeError as error:
        raise BadRow(f"column {error.colno}", "one JSON object", _shown(error)) from None
    except BadRow:
        raise
    except RecursionError:
        raise BadRow("", "one JSON object", "nesting without end") from None
    except ValueError:  # Python reads no number of more than 4,300 digits
        raise BadRow("", "numbers of a usual length", "one of thousands of digits") from None
    if not isinstance(row, dict):
        raise BadRow("", "one JSON object", kind(row))
    return row


def _shown(error: json.JSONDecodeError) -> str:
    rest = error.doc[error.pos : error.pos + 20]
    return f"{rest!r} ({error.msg})" if rest else f"the end of the line ({error.msg})"


def _no_constant(name: str) -> NoReturn:
    raise BadRow("", "strict JSON", name)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise BadRow(twice[:100], "each key once", "it twice in one object")
    return found


def clean(row: dict[str, Any], shape: Shape, tally: Tally) -> dict[str, Any]:
    """Return the row with the schema's keys alone and count it; raise BadRow."""
    for key in shape.keys:
        if key not in row:
            raise BadRow(key, "a list" if shape == CHAT else "text", "no such key")
    kept: dict[str, Any] = (
        {"messages": _turns(row["messages"], tally)}
        if shape == CHAT
        else {key: _text(row[key], key) for key in shape.keys}
    )
    if shape == PAIR and not kept["completion"]:
        raise BadRow("completion", "text to be learnt", "an empty one")
    tally.dropped.update(key[:100] for key in row if key not in shape.keys)
    tally.rows += 1
    return kept


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise BadRow(where, "text", kind(value))
    if any("\ud800" <= c <= "\udfff" for c in value):
        raise BadRow(where, "text", "half a surrogate pair")
    return value


def _turns(value: Any, tally: Tally) -> list[dict[str, str]]:
    if not isinstance(value, list):
        raise BadRow("messages", "a list of turns", kind(value))
    turns = [_turn(turn, f"messages[{i}]") for i, turn in enumerate(value)]
    if not any(turn["role"] == "assistant" and turn["content"] for turn in turns):
        said = ", ".join(turn["role"] for turn in turns) or "no turn"
        raise BadRow("messages", "an assistant turn with content", said[:200])
    tally.roles.update(turn["role"] for turn in turns)
    tally.dropped.update(f"messages[].{key[:90]}" for turn in value for key in turn if key not in ("role", "content"))
    return turns


def _turn(turn: Any, where: str) -> dict[str, str]:
    if not isinstance(turn, dict):
        raise BadRow(where, "an object with role and content", kind(turn))
    for key in ("role", "content"):
        if key not in turn:
            raise BadRow(
                f"{where}.{key}", "text", f"no such key among {', '.join(map(repr, list(turn)[:10])) or 'none'}"
            )
    role, content = turn["role"], turn["content"]
    if role not in ROLES:
        raise BadRow(f"{where}.role", f"one of {', '.join(ROLES)}", repr(role)[:60])
    return {"role": role, "content": _text(content, f"{where}.content")}


def kind(value: Any) -> str:
    """Return what a JSON value is, in words."""
    return "null" if value is None else NAMES[type(value)]
