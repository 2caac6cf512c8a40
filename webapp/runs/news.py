"""What new lines say of series: the last point of each, and every loss. Their other points stay in the lines."""

from __future__ import annotations

from collections import defaultdict
from operator import attrgetter

from training.spec.events import Kind

from .fresh import Fresh
from .readings import LOSS, figures, number_of
from .serieskeys import Key, is_known, names_of

Points = dict[Key, dict[float, float]]  # of each series {x: value}
STEPPED = (Kind.METRICS, Kind.EVALUATION)


class News:
    """Lines with the same numbers in them need not be looked into each: of each series it is the last that counts."""

    def __init__(self) -> None:
        self._samples: list[Fresh] = []
        self._last: dict[tuple[int, str, tuple[str, ...]], Fresh] = {}
        self._losses: dict[int, dict[float, float]] = defaultdict(dict)

    def add(self, event: Fresh) -> None:
        if event.kind in STEPPED:
            self._step(event)
        elif event.kind == Kind.SAMPLE and not is_known(event):
            self._samples.append(event)

    def _step(self, event: Fresh) -> None:
        if (step := event.step) is None:
            return
        like = event.attempt_id, event.kind, names_of(event.data)
        held = self._last.get(like)
        if held is None or held.step is None or step >= held.step:
            self._last[like] = event
        if event.kind == Kind.METRICS and (loss := number_of(event.data.get(LOSS))) is not None:
            self._losses[event.attempt_id][float(step)] = loss

    def points(self) -> Points:
        """Return of each series at least the last point, and all losses; of one x the later line's."""
        found: Points = {Key(attempt, LOSS, "step"): losses for attempt, losses in self._losses.items()}
        for event in (*self._samples, *sorted(self._last.values(), key=attrgetter("number"))):
            axis, x, numbers = figures(event)
            for name, value in numbers:
                found.setdefault(Key(event.attempt_id, name, axis), {})[x] = value
        return found
