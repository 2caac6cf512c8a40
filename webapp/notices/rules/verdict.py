"""What a rule says of one thing that is watched."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ..kinds import Kind


class Level(Enum):
    """UNSURE lies between the limit at which a notice begins and the one at which it ends."""

    BAD = "bad"
    UNSURE = "unsure"
    GOOD = "good"


@dataclass(frozen=True)
class Verdict:
    """`key`: which of several (a node, a GPU, a metric). `first`, `last`: when what was looked at was written, in
    seconds since the epoch. `figure`: what was seen, short. `text`: the same as a sentence.
    """

    kind: Kind
    key: str
    level: Level
    first: float
    last: float
    figure: str = ""
    text: str = ""

    @property
    def name(self) -> str:
        return f"{self.kind} {self.key}"
