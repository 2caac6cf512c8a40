"""PURE: the numbers of an event that are drawn."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from training.spec.events import Kind, number

LOSS = "loss"
AT = "at"  # series over steps: when each step's line was written, in seconds since the epoch
PROBLEM = "problem"  # beside an event's data: why it means nothing


Figures = list[tuple[str, float]]


class Told(Protocol):
    """A line, wherever it lies: new, a row, or out of a block."""

    @property
    def run_id(self) -> int: ...
    @property
    def attempt_id(self) -> int: ...
    @property
    def kind(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def at(self) -> datetime: ...
    @property
    def step(self) -> int | None: ...
    @property
    def data(self) -> dict[str, Any]: ...


class Reading(NamedTuple):
    """One point of a series; `axis` is step or time."""

    name: str
    axis: str
    x: float
    value: float


def readings(event: Told) -> Iterator[Reading]:
    """Yield every number of `event` that is drawn."""
    axis, x, found = figures(event)
    for name, value in found:
        yield Reading(name, axis, x, value)


def figures(event: Told) -> tuple[str, float, Figures]:
    """Return (axis, x, [(name, value)...]) of the numbers that are drawn: what readings yields, in one piece."""
    data = event.data
    if PROBLEM in data:
        return "step", 0.0, []
    if event.kind == Kind.SAMPLE and event.source.startswith("node@"):
        return "time", event.at.timestamp(), _of_sample(f"node{event.source.partition('@')[2]}/", data)
    if event.step is None or event.kind not in (Kind.METRICS, Kind.EVALUATION):
        return "step", 0.0, []
    if event.kind == Kind.EVALUATION:
        return "step", float(event.step), _numbers("eval/", data)
    found = _numbers("", data)
    if AT in data:
        found = [pair for pair in found if pair[0] != AT]
    found.append((AT, event.at.timestamp()))
    return "step", float(event.step), found


def _of_sample(node: str, data: dict[str, Any]) -> Figures:
    found = _numbers(node, data)
    for gpu in data.get("gpus", []):
        of = f"{node}gpu{gpu['index']}/"
        found += [pair for pair in _numbers(of, gpu) if pair[0] != f"{of}index"]
    return found


def _numbers(prefix: str, data: dict[str, Any]) -> Figures:
    return [
        (prefix + name, value)
        for name, raw in data.items()
        if (value := raw if raw.__class__ is float else number_of(raw)) is not None
    ]


def number_of(raw: object) -> float | None:
    """Return the number that is drawn for `raw`; None where it is none."""
    try:
        return float(raw) if raw.__class__ is int else number(raw)
    except OverflowError:  # an integer of hundreds of digits
        return None
