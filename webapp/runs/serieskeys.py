"""Which row each series has: made when its first point comes, remembered while this process lives."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

from django.db import transaction

from training.spec.events import ODD

from .each import insert_each
from .models import Series
from .readings import Told, laid_out

NUMBERS = frozenset({int, float})
ODD_NAMES = tuple(ODD)
MOST = 500_000  # remembered; beyond it is forgotten and asked for again
_known: dict[tuple[int, str], int] = {}
_shapes: dict[tuple[int, str], int] = {}  # (attempt, source) -> of its last sample


class Key(NamedTuple):
    """One series: `axis` is needed where its row has yet to be made."""

    attempt: int
    name: str
    axis: str


def series_ids(keys: Collection[Key]) -> dict[tuple[int, str], int]:
    """Return the id of each by (attempt, name); rows that are missing are made."""
    if missing := [key for key in keys if key[:2] not in _known]:
        found = _stored(missing)
        if absent := [key for key in missing if key[:2] not in found]:
            rows = [(key.attempt, key.name, key.axis) for key in absent]
            insert_each(Series, ("attempt_id", "name", "axis"), rows, unique=("attempt_id", "name"))
            found |= _stored(absent)
        transaction.on_commit(lambda: remember(found))  # one that is rolled back was never there
        return found | {key[:2]: _known[key[:2]] for key in keys if key[:2] in _known}
    return {key[:2]: _known[key[:2]] for key in keys}


def is_known(event: Told) -> bool:
    """Tell whether `event`, a sample, has numbers of the same names as the one before: their series are there."""
    if (row := laid_out(event)) is None:
        return True
    of, shape = (event.attempt_id, event.source), hash((row.shape, *_nulls(row.values)))
    if _shapes.get(of) == shape:
        return True
    transaction.on_commit(lambda: _shapes.__setitem__(of, shape))
    return False


def _nulls(values: list[Any]) -> list[int]:
    return [place for place, value in enumerate(values) if value is None] if None in values else []


def names_of(data: dict[str, Any]) -> tuple[str, ...]:
    """Return the names of the numbers in a line over steps."""
    if NUMBERS.issuperset(map(type, data.values())):
        return tuple(data)
    return tuple(name for name, value in data.items() if value.__class__ in NUMBERS or value in ODD_NAMES)


def _stored(keys: Collection[Key]) -> dict[tuple[int, str], int]:
    rows = Series.objects.filter(attempt__in={key.attempt for key in keys}, name__in={key.name for key in keys})
    return {(attempt, name): pk for attempt, name, pk in rows.values_list("attempt_id", "name", "pk")}


def remember(found: dict[tuple[int, str], int]) -> None:
    if len(_known) > MOST:
        forget()
    _known.update(found)


def forget() -> None:
    """Ask for every row again: what is remembered was found wrong."""
    _known.clear()
    _shapes.clear()
