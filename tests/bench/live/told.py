"""One line a figure: its median and 99th percentile, what was measured, its goals, and whether they hold."""

from __future__ import annotations

import os
import statistics
from collections.abc import Mapping, Sequence

from tests.bench.figures import load, percentile

STATISTICS = {
    "mean": statistics.fmean,
    "median": statistics.median,
    "95th percentile": lambda values: percentile(values, 0.95),
    "99th percentile": lambda values: percentile(values, 0.99),
    "most": max,
}


def tell(
    name: str, values: Sequence[float], goals: Mapping[str, float], what: str, *, unit: str = "ms", digits: int = 0
) -> bool:
    """Print the line of one figure; return whether each goal, the most that a statistic may be, holds."""
    shown = dict.fromkeys(("median", "99th percentile", *goals))
    got = ", ".join(f"{each} {STATISTICS[each](values):.{digits}f} {unit}" for each in shown)
    aim = ", ".join(f"{each} below {most:g} {unit}" for each, most in goals.items())
    holds = all(STATISTICS[each](values) < most for each, most in goals.items())
    where = f"load average {load():.1f} on {os.cpu_count()} processors"
    print(f"{name}: {got} ({what}; {where}); goal {aim}: {'holds' if holds else 'falls short'}", flush=True)
    return holds
