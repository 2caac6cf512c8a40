"""Medians, percentiles, and the lines that say whether a goal holds."""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Sequence


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least `share` (0..1) of the values don't exceed."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def load() -> float:
    """Return the load average of the last minute."""
    return os.getloadavg()[0]


def spread(values: Sequence[float], digits: int = 0) -> str:
    low, high = f"{min(values):.{digits}f}", f"{max(values):.{digits}f}"
    return low if low == high else f"{low} to {high}"


def verdict(
    name: str, figures: Sequence[float], goal: float, loads: Sequence[float], *, unit: str = "ms", digits: int = 0
) -> tuple[str, bool]:
    """Return the line of one figure: the median over runs, what it was got under, the goal; and whether it holds."""
    middle = statistics.median(figures)
    holds = middle <= goal
    under = f"load average {spread(loads, 1)} on {os.cpu_count()} processors"
    runs = f"{len(figures)} run{'s' if len(figures) > 1 else ''}"
    got = f"{name}: {middle:.{digits}f} {unit} ({runs}: {spread(figures, digits)}; {under})"
    return f"{got}; goal {goal:.{digits}f} {unit}: {'holds' if holds else 'falls short'}", holds
