"""A few values of many attempts at once, for lists: of their lines no more is read than that."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from training.spec.events import Kind

from . import windows
from .models import Attempt, Event, Series
from .readings import readings

STEPPED = (Kind.METRICS, Kind.EVALUATION)


def at_steps(places: Collection[tuple[int, int]], names: Sequence[str]) -> dict[tuple[int, str, int], float]:
    """Return the values at these (attempt, step) of these series over steps, by (attempt, name, step)."""
    attempts, steps = {attempt for attempt, _ in places}, {step for _, step in places}
    found = _told_at(attempts, steps, names)  # before the chunks: what is folded in between is in both
    rows = {row.pk: row for row in Series.objects.filter(attempt__in=attempts, name__in=names, axis="step")}
    xs: dict[int, set[float]] = {pk: {float(s) for a, s in places if a == row.attempt_id} for pk, row in rows.items()}
    stored = {(rows[pk].attempt_id, rows[pk].name, int(x)): value for (pk, x), value in windows.at(xs).items()}
    return stored | found


def _told_at(
    attempts: Collection[int], steps: Collection[int], names: Sequence[str]
) -> dict[tuple[int, str, int], float]:
    runs = Attempt.objects.filter(pk__in=attempts).values("run")
    rows = Event.objects.filter(run__in=runs, kind__in=STEPPED, attempt__in=attempts, step__in=steps)
    return {
        (row.attempt_id, reading.name, int(reading.x)): reading.value
        for row in rows.order_by("number")
        for reading in readings(row)
        if reading.name in names
    }
