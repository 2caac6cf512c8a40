"""PURE: the numbers of an event that are drawn."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from training.spec.events import Kind, number

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
        for key, raw in event.data.items():
            if (value := _number(raw)) is not None:
                yield Reading(f"{prefix}{key}", "step", float(event.step), value)
    elif event.kind == Kind.SAMPLE and event.source.startswith("node@"):
        yield from _of_sample(f"node{event.source.partition('@')[2]}", event)


def _of_sample(node: str, event: Told) -> Iterator[Reading]:
    at = event.at.timestamp()
    for key, raw in event.data.items():
        if (value := _number(raw)) is not None:
            yield Reading(f"{node}/{key}", "time", at, value)
    for gpu in event.data.get("gpus", []):
        for key, raw in gpu.items():
            if key != "index" and (value := _number(raw)) is not None:
                yield Reading(f"{node}/gpu{gpu['index']}/{key}", "time", at, value)


def _number(raw: object) -> float | None:
    try:
        return number(raw)
    except OverflowError:  # an integer of hundreds of digits
        return None
