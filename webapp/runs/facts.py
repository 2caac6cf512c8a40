"""What really runs, as the ranks found it: the facts of `started`, the counts of the data, what a resume restored.

Drawn from whatever those events hold. A field known here gets its group, words and unit; any other appears with its
own name under "More", so that a new one needs no change here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from training.spec.events import Kind
from training.spec.parts import StatePart
from webapp.show import NOTHING, figure, size, words

from .models import Attempt, Event
from .readings import PROBLEM

FORMATS, MODEL, RANKS, ROWS, TEST_ROWS, RESUME, MORE = (
    "Number formats", "Model", "Ranks and loading", "Data", "Data to evaluate on", "Restored on resume", "More",
)  # fmt: skip
GROUPS = (MODEL, FORMATS, RANKS, ROWS, TEST_ROWS, RESUME, MORE)
HASH = re.compile(r"[0-9a-f]{40,64}")  # shown by its beginning
TEST = "test"  # in the counts of the data, those of what is evaluated on
RANKS_SHOWN = 8  # of more, the most and the least are told


@dataclass(frozen=True)
class Fact:
    """One line of the panel. `value` is text for a person; `exact`, on hover, the value as it came."""

    label: str
    value: str
    exact: str = ""


@dataclass(frozen=True)
class Panel:
    """`skipped`: the torn checkpoints that a resume passed over, in words."""

    groups: list[tuple[str, list[Fact]]]
    skipped: list[str] = field(default_factory=list)


def count(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else figure(value)


def seconds(value: Any) -> str:
    return f"{figure(value)} s"


def flops(value: Any) -> str:
    return f"{value / 1e12:.4g} TFLOPS"


# field -> (group, words, how a number is printed)
KNOWN: Mapping[str, tuple[str, str, Callable[[Any], str]]] = {
    "parameters": (MODEL, "parameters", count),
    "trainable": (MODEL, "of these trained", count),
    "method": (MODEL, "method", count),
    "attention": (MODEL, "attention", count),
    "units": (MODEL, "FSDP units", count),
    "wrapped": (MODEL, "wrapped", count),
    "master_dtype": (FORMATS, "master weights", count),
    "base_dtype": (FORMATS, "frozen base", count),
    "compute_dtype": (FORMATS, "compute", count),
    "reduce_dtype": (FORMATS, "gradients reduced in", count),
    "world_size": (RANKS, "ranks", count),
    "nodes": (RANKS, "nodes", count),
    "chip": (RANKS, "chip", count),
    "chip_flops": (RANKS, "peak of a chip", flops),
    "loading": (RANKS, "weights loaded by", count),
    "loading_seconds": (RANKS, "loading took", seconds),
    "peak_ram": (RANKS, "host memory at most", size),
    "total_steps": (RANKS, "steps in all", count),
    "resumed_from": (RANKS, "resumed from step", count),
}
KNOWN_ROWS: Mapping[str, tuple[str, Callable[[Any], str]]] = {
    "rows": ("rows", count),
    "kept": ("kept", count),
    "dropped": ("dropped, too long", count),
    "untrained": ("left out, nothing to train", count),
    "cut": ("cut to the length", count),
    "sequences": ("sequences", count),
    "tokens": ("tokens", count),
    "trained_tokens": ("trained tokens", count),
    "longest": ("longest row, tokens", count),
    "seconds": ("tokenised in", seconds),
    "made": ("made for this run", count),
    "sha256": ("SHA-256 of the file", count),
}

PARTS = {str(part): part for part in StatePart}


def panel(attempt: Attempt | None) -> Panel:
    """Return what the newest attempt's events say; groups without a fact are left out."""
    found: dict[str, list[Fact]] = {name: [] for name in GROUPS}
    if attempt is None:
        return Panel([])
    for key, value in ordered(attempt.facts, KNOWN):
        if value is not None:
            group, label, show = KNOWN.get(key, (MORE, words(key), count))
            found[group].append(_fact(label, value, show))
    _share_of_trained(found[MODEL], attempt.facts)
    rows = _newest(attempt, Kind.DATA)
    found[ROWS] = _rows({key: value for key, value in rows.items() if key != TEST})
    found[TEST_ROWS] = _rows(rows.get(TEST))
    resumed = _newest(attempt, Kind.RESUMED)
    found[RESUME] = _restored(resumed)
    return Panel([(name, facts) for name, facts in found.items() if facts], _skipped(resumed))


def ordered(told: Mapping[str, Any], known: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the fields in the order of `known`, all others by name: PostgreSQL keeps no order of its own."""
    return [(key, told[key]) for key in (*(k for k in known if k in told), *sorted(told.keys() - known.keys()))]


def _rows(counts: Any) -> list[Fact]:
    told = ordered(counts, KNOWN_ROWS) if isinstance(counts, Mapping) else []
    known = ((key, value, KNOWN_ROWS.get(key, (words(key), count))) for key, value in told if value is not None)
    return [_fact(label, value, show) for _, value, (label, show) in known]


def _newest(attempt: Attempt, kind: str) -> dict[str, Any]:
    row = Event.objects.filter(run=attempt.run_id, kind=kind, attempt=attempt).order_by("-number").first()
    return row.data if row and PROBLEM not in row.data else {}


def _fact(label: str, value: Any, show: Callable[[Any], str]) -> Fact:
    if isinstance(value, str) and HASH.fullmatch(value):
        return Fact(label, value[:12], value)
    return Fact(label, text(value, show), str(value) if isinstance(value, int | float) else "")


def text(value: Any, show: Callable[[Any], str] = count) -> str:
    """Return any JSON value in words; `show` prints its numbers."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return show(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{words(str(name))} {text(inner, show)}" for name, inner in ordered(value, {})) or NOTHING
    if isinstance(value, list):
        return _of_ranks(value, show)
    return NOTHING if value is None or value == "" else str(value)[:200]


def _of_ranks(values: list[Any], show: Callable[[Any], str]) -> str:
    numbers = [value for value in values if isinstance(value, int | float)]
    if len(numbers) > RANKS_SHOWN and len(numbers) == len(values):
        return f"{show(min(numbers))} to {show(max(numbers))} ({len(numbers)} ranks)"
    return ", ".join(text(value, show) for value in values[: 4 * RANKS_SHOWN]) or NOTHING


def _share_of_trained(facts: list[Fact], told: Mapping[str, Any]) -> None:
    whole, part = told.get("parameters"), told.get("trainable")
    if isinstance(whole, int) and isinstance(part, int) and 0 < part < whole:
        at = next(i for i, fact in enumerate(facts) if fact.label == KNOWN["trainable"][1])
        facts[at] = Fact(facts[at].label, f"{facts[at].value} ({100 * part / whole:.2g}%)", facts[at].exact)


def _restored(resumed: Mapping[str, Any]) -> list[Fact]:
    parts = resumed.get("parts")
    others = {key: value for key, value in resumed.items() if key not in ("parts", "skipped") and value is not None}
    told = (
        [Fact(words(str(part)), str(fate)) for part, fate in ordered(parts, PARTS)]
        if isinstance(parts, Mapping)
        else []
    )
    return told + [_fact(words(key), value, count) for key, value in ordered(others, {})]


def _skipped(resumed: Mapping[str, Any]) -> list[str]:
    rows = resumed.get("skipped")
    return [_torn(row) for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []


def _torn(row: Mapping[str, Any]) -> str:
    name, node, fault = (text(row.get(key), str) for key in ("name", "node_rank", "fault"))
    return f"{name} on node {node}: {fault}"
