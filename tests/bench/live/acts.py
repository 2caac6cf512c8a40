"""Rows with runs of a million steps."""

from __future__ import annotations

import math
import random

from tests.browser.acts import Rows
from training.spec.events import Event as Line
from training.spec.events import Kind
from webapp.runs import folding, journal

# What of a step's line the twelve charts of `first` show; the last three are metrics that no chart of ours knows.
CHARTS = [
    "loss", "learning_rate", "grad_norm", "tokens_per_second", "step_seconds", "mean_token_accuracy", "entropy", "mfu",
    "memory_reserved", "reward", "kl", "margin",
]  # fmt: skip
AT_ONCE = 2000
BEGUN = 1_700_000_000.0


class Long(Rows):
    """As Rows, with long series."""

    def steps(self, run: int, count: int) -> int:
        """Write so many steps more, by lines as nodes write them; return the last step."""
        stream = self.feeds[run]._stream("train@0")
        chance = random.Random(stream.last_seq)
        for first in range(0, count, AT_ONCE):
            seq = stream.last_seq
            lines = [line(seq + i, chance) for i in range(1, min(AT_ONCE, count - first) + 1)]
            journal.record(stream, lines, stream.offset + 200 * len(lines))
            if folding.is_due(stream, seq):  # as the follower does
                folding.fold(stream)
        return stream.last_seq - 1  # its first line said that training has started


def line(seq: int, chance: random.Random) -> Line:
    step = seq - 1
    figures = {name: 1 + math.exp(-step / 1e5) + chance.gauss(0, 0.05) for name in CHARTS}
    return Line(seq, BEGUN + step, Kind.METRICS, step, figures)
