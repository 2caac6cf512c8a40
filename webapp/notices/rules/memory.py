"""What a watch remembers between two looks: small, and the same whether it was stored or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .holding import Since
from .lines import INTERVALS, Losses, MetricsLine


@dataclass(frozen=True)
class Memory:
    """`stepped`, `step`: when the newest line with metrics came, and which step it was of. `written`: when the last
    lines were written. `foretold`: when the disk's forecast was made last. Times in seconds since the epoch.
    `since`: see holding, by a verdict's name.
    """

    stepped: float
    step: int = 0
    written: tuple[float, ...] = ()
    losses: Losses = field(default_factory=Losses)
    foretold: float = 0.0
    since: dict[str, Since] = field(default_factory=dict)

    @property
    def between(self) -> list[float]:
        """Seconds between the last lines."""
        return [max(0.0, b - a) for a, b in zip(self.written, self.written[1:], strict=False)]

    def stepped_on(self, lines: Sequence[MetricsLine]) -> Memory:
        if not lines:
            return self
        written = (*self.written, *(line.at for line in lines))[-INTERVALS - 1 :]
        newest = max(lines, key=lambda line: line.received)
        return replace(self, stepped=newest.received, step=max(self.step, newest.step), written=written)

    def stored(self) -> dict[str, Any]:
        """Return it as JSON can carry it."""
        return {
            "stepped": self.stepped,
            "step": self.step,
            "written": list(self.written),
            "window": list(self.losses.window),
            "over": self.losses.over,
            "foretold": self.foretold,
            "since": {name: list(since) for name, since in self.since.items()},
        }

    @classmethod
    def of(cls, stored: dict[str, Any], now: float) -> Memory:
        """Return what was stored; of a watch that begins, what it knows `now`."""
        if not stored:
            return cls(stepped=now)
        since = {name: Since(*times) for name, times in stored["since"].items()}
        losses = Losses(tuple(stored["window"]), stored["over"])
        return cls(
            stored["stepped"], stored["step"], tuple(stored["written"]), losses, stored["foretold"], since
        )  # fmt: skip
