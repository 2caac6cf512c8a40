"""The planned learning rate as a small picture in SVG, and in one sentence."""

from __future__ import annotations

from dataclasses import dataclass

from training.spec.recipe import Recipe
from training.spec.schedule import learning_rate, learning_rates, warmup_steps

WIDTH, HEIGHT = 600.0, 90.0
AFTER = {
    "cosine": "then a cosine down to {last:.3g} at step {total}",
    "linear": "then straight down to {last:.3g} at step {total}",
    "constant": "the same at each of {total} steps",
    "constant_with_warmup": "then the same up to step {total}",
}


@dataclass(frozen=True)
class RateCurve:
    """`path`: the line in a box of WIDTH by HEIGHT. `warm`: where the warm-up ends in it, None without one."""

    path: str
    peak: float
    total: int
    warm: float | None
    words: str
    width: float = WIDTH
    height: float = HEIGHT

    @property
    def area(self) -> str:
        return f"{self.path} L{self.width} {self.height} L0 {self.height} Z"


def rate_curve(recipe: Recipe, total_steps: int) -> RateCurve:
    """Return the curve of a run of `total_steps`, at least 1."""
    points = learning_rates(recipe, total_steps)
    peak = max(rate for _, rate in points) or recipe.optimisation.learning_rate
    across = WIDTH / max(1, total_steps - 1)
    ends = [*points, (total_steps + (total_steps == 1), points[-1][1])]  # one step alone is a line too
    path = " ".join(
        f"{'L' if i else 'M'}{(step - 1) * across:.1f} {HEIGHT - (HEIGHT - 4) * rate / peak:.1f}"
        for i, (step, rate) in enumerate(ends)
    )
    warmup = (
        0
        if recipe.optimisation.schedule == "constant"
        else min(warmup_steps(recipe.optimisation, total_steps), total_steps)
    )
    warm = warmup * across if 0 < warmup < total_steps else None
    return RateCurve(path, peak, total_steps, warm, _words(recipe, total_steps, warmup))


def _words(recipe: Recipe, total: int, warmup: int) -> str:
    how = recipe.optimisation
    after = AFTER[how.schedule].format(last=learning_rate(recipe, total, total), total=total)
    if how.schedule == "constant":
        return f"{how.learning_rate:g}, {after}"
    rise = f"from 0 up to {how.learning_rate:g} at step {warmup + 1}" if warmup else f"from {how.learning_rate:g}"
    return f"{rise}, {after}"
