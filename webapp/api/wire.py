"""JSON as it may come in and as it goes out: strict both ways."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from django.http import HttpRequest
from ninja.parser import Parser
from ninja.renderers import JSONRenderer

from .problems import Stop

DEEPEST = 32  # a recipe is three levels deep; what is deeper only exhausts the stack
FIX = "Send one strict JSON object in UTF-8."


class StrictParser(Parser):
    """Refuses NaN, a key twice, text that no database can hold, and nesting without end."""

    def parse_body(self, request: HttpRequest) -> Any:
        try:
            value = json.loads(request.body, parse_constant=_no_constant, object_pairs_hook=_object)
        except RecursionError:
            raise Stop(400, "body", "it is nested too deeply", FIX) from None
        except ValueError as error:
            raise Stop(400, "body", f"it is not JSON: {error}", FIX) from None
        _check(value, "body", DEEPEST)
        return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A key that is there twice says two things, of which the last would win in silence."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"the key {json.dumps(name)[:100]} is there twice in one object")
        found[name] = value
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _check(value: Any, field: str, depth: int) -> None:
    if depth == 0:
        raise Stop(400, field, "it is nested too deeply", FIX)
    if isinstance(value, str) and not storable(value):
        raise Stop(400, field, "it holds a NUL or half a surrogate pair, which no database takes", "Leave it out.")
    if isinstance(value, dict):
        for key, inner in value.items():
            _check(key, field, depth)
            _check(inner, f"{field}.{key}", depth - 1)
    if isinstance(value, list):
        for i, inner in enumerate(value):
            _check(inner, f"{field}.{i}", depth - 1)


def storable(text: str) -> bool:
    """Return whether every database can hold `text`."""
    return "\0" not in text and not any("\ud800" <= c <= "\udfff" for c in text)


class StrictRenderer(JSONRenderer):
    """A number that JSON doesn't know is a bug of ours, never an answer."""

    json_dumps_params = {"allow_nan": False, "ensure_ascii": False}
