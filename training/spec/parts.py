"""What a checkpoint is made of, and what became of each part when training went on from it."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal


class StatePart(StrEnum):
    """A part of the training state. Values are stored and shown; never rename one."""

    WEIGHTS = "weights"
    OPTIMIZER = "optimizer"
    SCHEDULER = "scheduler"
    RNG = "rng"
    DATA_POSITION = "data_position"
    TOKENS = "tokens"


class Fate(StrEnum):
    """What a resume did with a part."""

    RESTORED = "restored"  # as it was, to the last bit
    RESHARDED = "resharded"  # the same values, cut anew for another number of ranks
    FRESH = "fresh"  # begun anew


# Without the weights there is nothing to go on from: that is a new run.
FreshPart = Literal["optimizer", "scheduler", "rng", "data_position", "tokens"]
