"""A job's file as a person wrote it: read, or refused with every field that is wrong, why, and the way out."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from .lint import Problem, Refused

M = TypeVar("M", bound=BaseModel)
SECRET = ("env",)  # fields of which nothing is repeated
KINDS = {
    "model_type": ("it should be an object", 'Write {"field": value, ...}.'),
    "dict_type": ("it should be an object", 'Write {"field": value, ...}.'),
    "list_type": ("it should be a list", "Write [value, ...]."),
    "tuple_type": ("it should be a list", "Write [value, ...]."),
    "string_type": ("it should be a text", 'Write "text".'),
    "bool_type": ("it should be true or false", "Write true or false."),
    "bool_parsing": ("it should be true or false", "Write true or false."),
}
EXAMPLE = 'Write {"field": value, ...}; --help lists the fields.'


def read_job(model: type[M], text: bytes, whole: str = "job") -> M:
    """Return the job that the JSON `text` describes; raise Refused with every problem. `whole` names the file."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        at = f" (line {error.lineno}: {error.msg})" if isinstance(error, json.JSONDecodeError) else ""
        raise Refused([Problem(whole, f"it is no JSON{at}", EXAMPLE)]) from None
    try:
        return model.model_validate_json(json.dumps(data))
    except ValidationError as error:
        raise Refused([_problem(model, found, whole) for found in error.errors(include_url=False)]) from None


def words(error: Mapping[str, Any], model: type[BaseModel] | None = None) -> tuple[str, str]:
    """Return reason and way out of one of pydantic's errors; empty where only the field's own rule tells the way."""
    kind, context, names = error["type"], error.get("ctx") or {}, list(model.model_fields) if model else []
    if kind in KINDS:
        return KINDS[kind]
    if kind == "extra_forbidden":
        near = difflib.get_close_matches(str(error["loc"][-1]), names, n=1)
        known = f"Known here: {', '.join(names)}." if names else "Leave it out."
        return "unknown field", f"Did you mean {near[0]}?" if near else known
    if kind == "missing":
        return "it is missing", "Give it."
    if kind == "too_short":
        return f"at least {context['min_length']} needed, {context['actual_length']} given", "Give more."
    if kind == "too_long":
        given = context.get("actual_length") or "more"
        return f"at most {context['max_length']} possible, {given} given", "Give fewer."
    said = str(error["msg"]).removeprefix("Value error, ")
    return said[:1].lower() + said[1:], ""


def _problem(model: type[BaseModel], error: Mapping[str, Any], whole: str) -> Problem:
    location = [str(part) for part in error["loc"]]
    above = _at(model, location[:-1])
    reason, fix = words(error, above)
    given = error.get("input")
    if not fix and isinstance(given, str | int | float) and not {*SECRET} & {*location}:
        reason = f"{reason} (got {json.dumps(given, ensure_ascii=False)[:80]})"
    info = above.model_fields.get(location[-1]) if above and location else None
    own = (info.description or "") if info else ""
    return Problem(".".join(location) or whole, reason, " ".join(filter(None, (fix, own))) or "Change the value.")


def _at(model: type[BaseModel], location: Sequence[str]) -> type[BaseModel] | None:
    """Return the model that holds what is named at the end of `location`."""
    found: Any = model
    for part in location:
        info = found.model_fields.get(part) if found else None
        found = _model(info.annotation) if info else found if part.isdigit() else None
    return found if isinstance(found, type) else None


def _model(annotation: Any) -> type[BaseModel] | None:
    """Return the model in a field's type, as in a tuple of them."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _model(part))), None)
