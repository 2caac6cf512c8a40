"""PURE: the numbers of an event that are drawn."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from training.spec.events import Kind, number

LOSS = "loss"
AT = "at"  # series over steps: when each step's line was written, in seconds since the epoch
PROBLEM = "problem"  # beside an event's data: why it means nothing
LONGEST = 100  # letters of a series' name
PREFIXES = {Kind.METRICS: "", Kind.EVALUATION: "eval/"}
Figures = list[tuple[str, float]]
Shape = tuple[Any, ...]


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


class Row(NamedTuple):
    """All of a line that may be a number, one after another. `shape` says what each is (see names)."""

    axis: str
    x: float
    shape: Shape
    values: list[Any]


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
    if (found := laid_out(event)) is None:
        return "step", 0.0, []
    pairs = zip(names(found.shape), map(number_of, found.values), strict=True)
    return found.axis, found.x, [(name, value) for name, value in pairs if name and value is not None]


def laid_out(event: Told) -> Row | None:
    """Return a line's values, before any is looked into; None where it has none that are drawn."""
    data = event.data
    if PROBLEM in data:
        return None
    if event.kind == Kind.SAMPLE:
        return _of_sample(event, data) if event.source.startswith("node@") else None
    if event.step is None or event.kind not in PREFIXES:
        return None
    if event.kind == Kind.EVALUATION:
        return Row("step", float(event.step), ("eval/", tuple(data)), [*data.values()])
    return Row("step", float(event.step), ("", (*data, AT)), [*data.values(), event.at.timestamp()])


def _of_sample(event: Told, data: dict[str, Any]) -> Row:
    flat = {name: raw for name, raw in data.items() if raw.__class__ is not list}
    shape: list[Any] = [f"node{event.source.partition('@')[2]}/", tuple(flat)]
    values = [*flat.values()]
    for gpu in data.get("gpus", []):
        shape.append((gpu["index"], *gpu))
        values += gpu.values()
    return Row("time", event.at.timestamp(), tuple(shape), values)


@lru_cache(maxsize=2000)
def names(shape: Shape) -> tuple[str, ...]:
    """Return the series of each value of such a line; empty where it is none, or another comes after it."""
    prefix, own, *gpus = shape
    found = [prefix + name for name in own]
    for index, *fields in gpus:
        found += ["" if name == "index" else f"{prefix}gpu{index}/{name}" for name in fields]
    last = {name[:LONGEST]: place for place, name in enumerate(found)}
    return tuple(name[:LONGEST] if last[name[:LONGEST]] == place else "" for place, name in enumerate(found))


def number_of(raw: object) -> float | None:
    """Return the number that is drawn for `raw`; None where it is none."""
    if isinstance(raw, float):  # nearly all are
        return raw
    try:
        return float(raw) if raw.__class__ is int else number(raw)
    except OverflowError:  # an integer of hundreds of digits
        return None
