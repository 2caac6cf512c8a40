"""Lines that are new, on their way to be rows: no model's object for each, which would cost more than its row."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from training.spec.events import Event as Line
from training.spec.events import strict

from .models import Stream

COLUMNS = ("run_id", "number", "attempt_id", "source", "seq", "kind", "at", "received_at", "step", "data")
UNSTORABLE = ("\\u0000", "\\ud")  # how JSON writes NUL, surrogates, and some letters beside them
encode = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


@dataclass(slots=True)
class Fresh:
    """`text`: the data as JSON. `number`: its place in the run's journal, once it has one."""

    run_id: int
    attempt_id: int
    source: str
    seq: int
    kind: str
    at: datetime
    step: int | None
    data: dict[str, Any]
    text: str
    number: int = 0

    def mark(self, name: str, value: str) -> None:
        """Add a field to the data."""
        self.data = {**self.data, name: value}
        self.text = encode(self.data)

    def row(self, at: Any, received_at: Any) -> tuple[Any, ...]:
        """Return the COLUMNS; `at` and `received_at` as the database takes them."""
        same = (self.run_id, self.number, self.attempt_id, self.source, self.seq, self.kind)
        return (*same, at, received_at, self.step, self.text)


def fresh_of(stream: Stream, lines: Iterable[Line]) -> list[Fresh]:
    same, found = (stream.attempt.run_id, stream.attempt_id, stream.source), []
    for line in lines:
        data, text = (line.data, line.text) if line.text else storable(line.data)
        at = datetime.fromtimestamp(line.at, UTC)
        found.append(Fresh(*same, line.seq, line.kind, at, line.step, data, text))
    return found


def storable(value: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Return `value`, and as strict JSON, without what PostgreSQL's can't hold: NUL and lone surrogates are escaped."""
    try:
        text = encode(value)
    except ValueError:
        value = strict(value)
        text = encode(value)
    if any(part in text for part in UNSTORABLE):
        value = _escaped(value)
        text = encode(value)
    return value, text


def _escaped(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_escaped(key): _escaped(v) for key, v in value.items()}
    if isinstance(value, list):
        return [_escaped(v) for v in value]
    return value
