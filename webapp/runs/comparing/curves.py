"""One metric of several runs, along steps, tokens or time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..models import Run, Series
from ..readings import AT
from ..series import Reading, lineages, merged, named, read_all
from ..windows import Window

POINTS = 600  # of each run: more than a chart is wide for twenty of them
Pair = list[Any]  # [x, value as JSON carries it]


class Along(NamedTuple):
    """What curves are drawn along. `series`: has each step's x; empty: x is the step. `from_first`: counted from 0."""

    label: str
    series: str = ""
    from_first: bool = False


ALONG = {
    "step": Along("step"),
    "tokens": Along("tokens", "num_tokens"),
    "time": Along("time since the start", AT, from_first=True),
}


def metrics(runs: Sequence[Run]) -> list[str]:
    """Return the names of all metrics over steps that any of these runs has, the loss first."""
    rows = Series.objects.filter(attempt__run__in=runs, axis="step").values_list("name", flat=True).distinct()
    held = {along.series for along in ALONG.values()} | {"epoch"}
    return sorted(set(rows) - held, key=lambda name: (name != "loss", name != "eval/loss", name))


def curves(runs: Sequence[Run], name: str, x: str) -> dict[int, list[Pair] | None]:
    """Return each run's curve as [x, value], by run: empty where it has none, None where it has no such x."""
    along = ALONG[x]
    found = _read(runs, [name, along.series] if along.series else [name])
    return {run.pk: _placed(found.get((run.pk, name)), found.get((run.pk, along.series)), along) for run in runs}


def _read(runs: Sequence[Run], names: Sequence[str]) -> dict[tuple[int, str], Reading]:
    """Return these series of these runs, by run and name, read at once: a question each would take most of the time."""
    held: dict[tuple[int, str], list[Series]] = {}
    rows = Series.objects.filter(attempt__run__in=runs, axis="step").select_related("attempt").order_by("attempt")
    for row in named(rows, names):
        held.setdefault((row.attempt.run_id, row.name), []).append(row)
    spans = lineages([run.pk for run in runs])
    views = [merged(parts, spans[run]) for (run, _), parts in held.items()]
    return dict(zip(held, read_all(views, Window(-math.inf, math.inf, POINTS)), strict=True))


def _placed(found: Reading | None, there: Reading | None, along: Along) -> list[Pair] | None:
    if found is None or not found.steps:
        return []
    if not along.series:
        return [list(pair) for pair in zip(found.steps, found.values, strict=True)]
    ticks = _finite(there) if there else []
    if not ticks:
        return None
    zero = ticks[0][1] if along.from_first else 0.0
    return [[x - zero, value] for x, value in zip(at(ticks, found.steps), found.values, strict=True)]


def _finite(reading: Reading) -> list[tuple[float, float]]:
    pairs = zip(reading.steps, reading.values, strict=True)
    return [(step, x) for step, x in pairs if not isinstance(x, str) and math.isfinite(x)]


def at(ticks: Sequence[tuple[float, float]], steps: Sequence[float]) -> list[float]:
    """Return x at each of the steps, on the straight line between the two known next to it; at the ends, theirs.

    Of a long run not every step's x was read. What rises steadily between two points, such as tokens, is exact there.
    """
    known, xs = zip(*ticks, strict=True)
    return [float(x) for x in np.interp(steps, known, xs)]
