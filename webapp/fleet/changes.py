"""Who changed what of a node, in words."""

from __future__ import annotations

from .models import DESCRIBED, Node, NodeChange

# Notes are prose and the key has its own sentence; the others are told with what they were.
TOLD = ("name", "cluster", *DESCRIBED, "identity", "jump", "labels")


def record(node: Node, actor: str, text: str) -> None:
    """Write it down; within the transaction of the change."""
    NodeChange.objects.create(node=node, actor=actor[:150], text=text)


def differences(before: Node, after: Node) -> str:
    """Return what `after` has that `before` had not, such as 'port 22 → 2222, notes changed'; empty: nothing."""
    told = [
        f"{name.replace('_', ' ')} {_shown(was)} → {_shown(now)}"
        for name in TOLD
        if (was := getattr(before, name)) != (now := getattr(after, name))
    ]
    return ", ".join([*told, *(["notes changed"] if before.notes != after.notes else [])])


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return " ".join(map(str, value)) or "none"
    return "none" if value in (None, "") else str(value)
