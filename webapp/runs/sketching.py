"""PURE: a curve of a few dozen points that grows with its run, whatever the run's length.

Steps are cut into stretches of `stride`; of each, one point stays: the first of the first stretch, the last of every
other, and one that is not finite before any that is. Once there are too many the stride doubles. A point taken twice
changes nothing, and one that comes late finds its stretch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from training.spec.events import strict

MOST = 80  # points kept: twice what a curve of 80 pixels shows
Value = float | str
Point = tuple[float, Value]


@dataclass(frozen=True)
class Drawn:
    """What Sketch keeps. `attempt` 0: nothing yet."""

    attempt: int = 0
    step: float = -math.inf
    last: Value = 0.0
    stride: int = 1
    curve: list[list[Value]] = field(default_factory=list)


def drawn_on(old: Drawn, attempt: int, after: float, points: Mapping[float, float]) -> Drawn:
    """Return the curve with these losses {step: loss} of `attempt`, which began behind step `after`.

    What an attempt tells after a newer one has a loss isn't news.
    """
    if attempt < old.attempt or not points:
        return old
    kept = old.curve if attempt == old.attempt else [pair for pair in old.curve if float(pair[0]) <= after]
    end = max(points)
    newer = attempt > old.attempt or end >= old.step
    step, last = (end, _value(points[end])) if newer else (old.step, old.last)
    stride, curve = _thinned(old.stride, *_grown(old.stride, kept, _shown(points)))
    return Drawn(attempt, step, last, stride, curve)


def _grown(stride: int, kept: list[list[Value]], new: list[Point]) -> tuple[list[list[Value]], list[Point]]:
    """Return what of a curve stays as it is, and the points behind that; mostly all but its last one stays."""
    settled = len(kept) - 1 if kept and new[0][0] > float(kept[-1][0]) else 0
    return kept[:settled], _cut(stride, [*((float(x), y) for x, y in kept[settled:]), *new])


def _shown(points: Mapping[float, float]) -> list[Point]:
    return [(x, _value(y)) for x, y in sorted(points.items())]


def _value(number: float) -> Value:
    """Six digits draw any curve; one that is not finite goes by its name."""
    return float(f"{number:.6g}") if math.isfinite(number) else str(strict(number))


def _thinned(stride: int, settled: list[list[Value]], rest: list[Point]) -> tuple[int, list[list[Value]]]:
    curve = [*settled, *([x, y] for x, y in rest)]
    while len(curve) > MOST:
        stride *= 2
        curve = [[x, y] for x, y in _cut(stride, [(float(x), y) for x, y in curve])]
    return stride, curve


def _cut(stride: int, points: list[Point]) -> list[Point]:
    found: dict[int, Point] = {}
    for point in points:
        stretch = max(0, math.ceil(point[0]) - 1) // stride
        rival = found.get(stretch)
        if rival is None or _rank(stretch, point) >= _rank(stretch, rival):
            found[stretch] = point
    return [found[stretch] for stretch in sorted(found)]


def _rank(stretch: int, point: Point) -> tuple[bool, float]:
    return isinstance(point[1], str), point[0] if stretch else -point[0]
