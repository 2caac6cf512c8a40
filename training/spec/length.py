"""How many optimizer steps a run takes."""

from __future__ import annotations

import math

from .recipe import Recipe


def total_steps(recipe: Recipe, *, rows: int, ranks: int) -> int:
    """Return the steps of a whole run over `rows` training rows on `ranks` ranks; at least 1.

    With `epochs` it is what the Trainer counts: each rank takes its share of the batches, the last one filled
    up, and a step that lacks some of its accumulation is a step. Exact where each row stays one row; packing or
    dropped rows make it fewer, which the event `started` tells.
    """
    how = recipe.optimisation
    if not how.epochs:
        return how.max_steps
    batches = math.ceil(math.ceil(rows / how.per_device_batch) / ranks)
    return max(1, math.ceil(how.epochs * max(1, math.ceil(batches / how.accumulation))))
