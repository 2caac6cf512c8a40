"""Where runs ended: the last value of each metric, the best one marked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..models import Run
from ..series import last_metrics

Value = float | str | None
LOW, HIGH = re.compile(r"(^|/|_)(loss|perplexity)$"), re.compile(r"accuracy|_per_second$|(^|_)mfu$")
DULL = {"epoch"}  # steps say as much


@dataclass(frozen=True)
class Final:
    """A metric. `values`: of each run, with whether it is the best of them; None where it has none."""

    name: str
    values: list[tuple[Value, bool]]


def finals(runs: Sequence[Run]) -> list[Final]:
    """Return the metrics that any of these runs has, the loss first."""
    last = [last_metrics(run) for run in runs]
    names = sorted({name for found in last for name in found} - DULL, key=lambda n: (n != "loss", n != "eval/loss", n))
    return [Final(name, marked(name, [found.get(name) for found in last])) for name in names]


def marked(name: str, values: Sequence[Value]) -> list[tuple[Value, bool]]:
    """Tell of each value whether it is the best: of two or more that can be compared, where it is known which way."""
    numbers = [value for value in values if isinstance(value, int | float)]
    pick = min if LOW.search(name) else max if HIGH.search(name) else None
    best = pick(numbers) if pick and len(numbers) > 1 else None
    return [(value, best is not None and value == best) for value in values]
