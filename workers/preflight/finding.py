"""What a check says of a node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from training.spec.lint import Problem
from webapp.preflights.models import State


@dataclass(frozen=True)
class Finding:
    """`text`: what was found, or why there is nothing to find. `field`, `fix`: where to mend it, and how."""

    state: State
    text: str
    field: str = ""
    fix: str = ""

    @property
    def sentence(self) -> str:
        return f"{self.field}: {self.text}. {self.fix}"


Findings = dict[str, Finding]  # by a check's slug


def ok(text: str) -> Finding:
    return Finding(State.OK, text)


def nothing(why: str) -> Finding:
    return Finding(State.NOTHING, why)


def warning(text: str, fix: str, field: str = "") -> Finding:
    return Finding(State.WARNING, text, field, fix)


def bad(*problems: Problem) -> Finding:
    """Return all of them as one."""
    reasons, fixes = (list(dict.fromkeys(texts)) for texts in _texts(problems))
    return Finding(State.PROBLEM, "; ".join(reasons), problems[0].field, " ".join(fixes))


def _texts(problems: Sequence[Problem]) -> tuple[list[str], list[str]]:
    return [problem.reason for problem in problems], [problem.fix for problem in problems]
