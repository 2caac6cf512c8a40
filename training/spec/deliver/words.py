"""What is said of a destination or a job that is wrong: field, reason, way out, and nothing of what was given."""

from __future__ import annotations

import re
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticCustomError

from ..lint import Problem, Refused
from .secrets import SECRETS, WORDS_OF_SECRETS


def wrong(reason: str, fix: str) -> PydanticCustomError:
    """Return what a validator raises."""
    return PydanticCustomError("delivery", "{reason}", {"reason": reason, "fix": fix})


def refused(error: ValidationError, whole: str) -> Refused:
    """Return every problem that was found in the input; `whole` is the field where none is named."""
    return Refused([_problem(e, whole) for e in error.errors(include_url=False, include_input=False)])


def _problem(error: Any, whole: str) -> Problem:
    """Return the problem; what was given is not repeated, for a secret may be in it."""
    location = [str(part) for part in error["loc"] if part not in SECRETS]
    field = ".".join(location) or whole
    if error["type"] == "delivery":
        return _ours(field, error["ctx"]["reason"], error["ctx"]["fix"], whole)
    if error["type"] == "extra_forbidden" and any(word in location[-1].lower() for word in WORDS_OF_SECRETS):
        names = ", ".join(name for needed, also in SECRETS.values() for name in (*needed, *also))
        return Problem(field, "a secret is no field of a destination", f"Remove it; the node reads {names}.")
    if error["type"] == "extra_forbidden":
        return Problem(field, "unknown field", "Remove it.")
    if error["type"].startswith("union_tag"):
        return Problem(f"{field}.kind" if field != whole else "kind", "no such kind", "Choose path, s3 or hub.")
    return Problem(field, str(error["msg"])[:1].lower() + str(error["msg"])[1:], "Change the value.")


def _ours(field: str, reason: str, fix: str, whole: str) -> Problem:
    """A rule between fields names the one that it is about at the beginning of its reason."""
    name, colon, rest = reason.partition(": ")
    if colon and re.fullmatch(r"[a-z_.]+", name):
        return Problem(name if field == whole else f"{field}.{name}", rest, fix)
    return Problem(field, reason, fix)
