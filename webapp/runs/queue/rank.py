"""Priorities: who may give which."""

from __future__ import annotations

from django.contrib.auth.models import User

from training.spec.lint import Problem

LOWEST, HIGHEST = -100, 100


def priority_problems(value: int, by: User | None, old: int = 0, owner: User | None = None) -> list[Problem]:
    """Return why `by` may not give a run this priority. Staff may give any; its owner may lower it.

    `old`: what it has, 0 before it is made, when `by` is who makes it. `by` None is the service itself.
    """
    if not LOWEST <= value <= HIGHEST:
        return [Problem("priority", f"it is {value}", f"Give a number from {LOWEST} to {HIGHEST}; 0 is normal.")]
    if by is None or by.is_staff or value == old:
        return []
    if value > old:
        return [Problem("priority", f"it is {old}, and only staff may raise it", "Ask somebody who is staff.")]
    if owner is not None and owner != by:
        return [Problem("priority", "the run is somebody else's", "Its owner can lower it, or staff.")]
    return []
