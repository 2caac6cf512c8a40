"""The env file of a job: KEY=value lines, one each; the only place on a node where secrets lie."""

from __future__ import annotations

import re
from collections.abc import Mapping

from .lint import Problem, Refused
from .mark import MARK

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def dump(env: Mapping[str, str]) -> str:
    """Return the file's text; raise Refused, without showing values, where a name or value can't stand in it."""
    found = [problem for name, value in env.items() if (problem := _problem(name, value))]
    if found:
        raise Refused(found)
    return "".join(f"{name}={value}\n" for name, value in env.items())


def parse(text: str, file: str = "env") -> dict[str, str]:
    """Read the file's text; raise Refused with `file` and the line, never its content, where it is no setting."""
    env: dict[str, str] = {}
    found = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        name, equals, value = line.partition("=")
        if not equals:
            found.append(Problem(f"{file} line {number}", "it is not KEY=value", "Write one setting a line."))
        elif problem := _problem(name, value):
            found.append(Problem(f"{file} line {number}", problem.reason, problem.fix))
        env[name] = value
    if found:
        raise Refused(found)
    return env


def _problem(name: str, value: str) -> Problem | None:
    if not NAME.fullmatch(name):
        return Problem(f"env {name[:40]!r}", "this is no name of a setting", "Use letters, digits and underscores.")
    if name == MARK:
        return Problem(f"env {name}", "the supervisor sets it itself", "Remove it.")
    if any(character in value for character in "\n\r\0"):
        return Problem(f"env {name}", "its value holds a line break or a NUL byte", "Use a value of one line.")
    return None
