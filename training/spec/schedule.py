"""PURE: the learning rate of every step, before any of them is taken.

transformers' schedules (`transformers.optimization.get_scheduler`) in their own order of operations, so that what is
drawn before a launch equals what the ranks print, to the last digit. The Trainer steps the schedule once per optimizer
step, whatever the number of ranks and of forward passes in one: neither is asked for here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from .recipe import Recipe
from .sections.optimisation import Optimisation

POINTS = 200


@dataclass(frozen=True)
class Span:
    """Steps used to warm up, and steps in all."""

    warmup: int
    total: int

    def warmed(self, step: int) -> float:
        return float(step) / float(max(1, self.warmup))

    @property
    def after(self) -> float:
        """Steps behind the warm-up; 1 where there is none, which nothing is divided by then."""
        return float(max(1, self.total - self.warmup))


def _constant(step: int, span: Span) -> float:
    return 1.0


def _constant_with_warmup(step: int, span: Span) -> float:
    return span.warmed(step) if step < span.warmup else 1.0


def _linear(step: int, span: Span) -> float:
    return span.warmed(step) if step < span.warmup else max(0.0, float(span.total - step) / span.after)


def _cosine(step: int, span: Span) -> float:
    if step < span.warmup:
        return span.warmed(step)
    progress = float(step - span.warmup) / span.after
    return max(0.0, 0.5 * (1.0 + math.cos(math.pi * 0.5 * 2.0 * progress)))


SHAPES: dict[str, Callable[[int, Span], float]] = {
    "constant": _constant,
    "constant_with_warmup": _constant_with_warmup,
    "linear": _linear,
    "cosine": _cosine,
}


def warmup_steps(how: Optimisation, total_steps: int) -> int:
    """Return the steps that the learning rate rises for: as given, else the share of all, rounded up."""
    return how.warmup_steps or math.ceil(total_steps * how.warmup_ratio)


def learning_rate(recipe: Recipe, total_steps: int, step: int) -> float:
    """Return the rate that optimizer step `step` (from 1) is taken with, as the Trainer logs it at that step."""
    how = recipe.optimisation
    return how.learning_rate * SHAPES[how.schedule](step - 1, Span(warmup_steps(how, total_steps), total_steps))


def learning_rates(recipe: Recipe, total_steps: int, points: int = POINTS) -> list[tuple[int, float]]:
    """Return (step, learning rate) of at most about `points` steps; first, last and the warm-up's end are among them.

    Steps count from 1 to `total_steps`. No step, no point.
    """
    stride = max(1, math.ceil(total_steps / points))
    peak = warmup_steps(recipe.optimisation, total_steps) + 1
    steps = {1, peak, total_steps, *range(1, total_steps + 1, stride)}
    return [(step, learning_rate(recipe, total_steps, step)) for step in sorted(steps) if 1 <= step <= total_steps]
