"""How the new-run form, and the form that moves a run, draw where a run would like to train."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from training.spec.lint import Problem


@dataclass(frozen=True)
class WishField:
    """`value`: as typed; `empty`: what it means left empty; `number`: a phone shows digits."""

    name: str
    label: str
    empty: str
    help: str
    number: bool = False
    value: str = ""
    problems: Sequence[Problem] = ()


FIELDS = (
    WishField("nodes", "Nodes", "all in service", "How many. It waits for as many.", number=True),
    WishField("gpus_per_node", "GPUs per node", "all of each", "On a node without GPUs: ranks.", number=True),
    WishField("labels", "Labels", "any node", "Words that a node must all have, with commas between."),
    WishField("on_nodes", "Only on", "any of the cluster", "Names of nodes, with commas between."),
)
PRIORITY = WishField(
    "priority", "Priority", "0", "Higher goes first, -100 to 100; only staff may give more than 0.", number=False
)


def fields(typed: Mapping[str, str], problems: Sequence[Problem], *, priority: bool = True) -> list[WishField]:
    """Return the fields with what was typed, and what is wrong with it."""
    return [
        replace(f, value=typed.get(f.name, ""), problems=[p for p in problems if p.field == f.name])
        for f in (*FIELDS, *([PRIORITY] if priority else []))
    ]
