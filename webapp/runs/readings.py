"""PURE: the numbers of an event that are drawn."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from training.spec.events import Kind, number

AT = "at"  # series over steps: when each step's line was written, in seconds since the epoch
PROBLEM = "problem"  # beside an event's data: why it means nothing


class Told(Protocol):
    """What an event has to have."""

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
    if PROBLEM in event.data:
        return
    if event.kind in (Kind.METRICS, Kind.EVALUATION) and event.step is not None:
        prefix = "eval/" if event.kind == Kind.EVALUATION else ""
        step = float(event.step)
        for key, raw in event.data.items():
            if (value := number_of(raw)) is not None and key != AT:
                yield Reading(f"{prefix}{key}", "step", step, value)
        if event.kind == Kind.METRICS:
            yield Reading(AT, "step", step, event.at.timestamp())
    elif event.kind == Kind.SAMPLE and event.source.startswith("node@"):
        yield from _of_sample(f"node{event.source.partition('@')[2]}", event)


def _of_sample(node: str, event: Told) -> Iterator[Reading]:
    at = event.at.timestamp()
    for key, raw in event.data.items():
        if (value := number_of(raw)) is not None:
            yield Reading(f"{node}/{key}", "time", at, value)
    for gpu in event.data.get("gpus", []):
        for key, raw in gpu.items():
            if key != "index" and (value := number_of(raw)) is not None:
                yield Reading(f"{node}/gpu{gpu['index']}/{key}", "time", at, value)


def number_of(raw: object) -> float | None:
    """Return the number that is drawn for `raw`; None where it is none."""
    try:
        return number(raw)
    except OverflowError:  # an integer of hundreds of digits
        return None
