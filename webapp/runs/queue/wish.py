"""Where a run would like to train: how many nodes, how many GPUs on each, which ones. Nothing here touches a row."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from training.spec.lint import Problem, Refused

MOST_NODES, MOST_GPUS, MOST_WORDS = 1000, 64, 50
WORD = re.compile(r"[A-Za-z0-9._-]{1,50}")
FIELDS = ("nodes", "gpus_per_node", "labels", "on_nodes")


@dataclass(frozen=True)
class Wish:
    """`nodes`: how many; None: all that are named, or else all in service. `gpus_per_node`: None: all of each node.

    `labels`: which a node must all have. `on_nodes`: names of the nodes that may be taken; empty: any of the cluster.
    A node without GPUs counts its ranks as if they were GPUs.
    """

    nodes: int | None = None
    gpus_per_node: int | None = None
    labels: tuple[str, ...] = ()
    on_nodes: tuple[str, ...] = ()

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> Wish:
        """Return a checked wish; raise Refused with every problem. `raw` may lack any of the fields."""
        problems: list[Problem] = []
        wish = cls(
            _count(raw.get("nodes"), "nodes", MOST_NODES, problems),
            _count(raw.get("gpus_per_node"), "gpus_per_node", MOST_GPUS, problems),
            _words(raw.get("labels") or (), "labels", problems),
            _words(raw.get("on_nodes") or (), "on_nodes", problems),
        )
        if wish.nodes and wish.on_nodes and wish.nodes > len(wish.on_nodes):
            why = f"{wish.nodes} are asked for, and {len(wish.on_nodes)} named"
            problems.append(Problem("nodes", why, "Name as many nodes, or leave the number empty."))
        if problems:
            raise Refused(problems)
        return wish

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"labels": list(self.labels), "on_nodes": list(self.on_nodes)}


def typed(text: Mapping[str, str]) -> Wish:
    """Return the wish that was typed into a form: numbers, and words with commas or spaces between. Raises Refused."""
    numbers = {name: _number(text.get(name, "").strip()) for name in FIELDS[:2]}
    words = {name: re.split(r"[,\s]+", text.get(name, "").strip(" ,\t\r\n")) for name in FIELDS[2:]}
    return Wish.of(numbers | {name: list(filter(None, found)) for name, found in words.items()})


def shown(wish: Wish) -> dict[str, str]:
    """Return what `typed` would read as `wish`."""
    numbers = {name: str(getattr(wish, name) or "") for name in FIELDS[:2]}
    return numbers | {name: ", ".join(getattr(wish, name)) for name in FIELDS[2:]}


def _number(text: str) -> int | str | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else text or None


def _count(value: Any, field: str, most: int, problems: list[Problem]) -> int | None:
    if value is None or (type(value) is int and 1 <= value <= most):
        return value
    problems.append(Problem(field, f"it is {str(value)[:30]!r}", f"Give a number from 1 to {most}, or leave it empty."))
    return None


def _words(value: Iterable[Any], field: str, problems: list[Problem]) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(str(word) for word in value))
    if bad := next((word for word in found if not WORD.fullmatch(word)), None):
        fix = "Words are made of letters, digits, dots, dashes and underscores; commas stand between them."
        problems.append(Problem(field, f"{bad[:60]!r} is no such word", fix))
    if len(found) > MOST_WORDS:
        problems.append(Problem(field, f"there are {len(found)}", f"Give at most {MOST_WORDS}."))
    return found
