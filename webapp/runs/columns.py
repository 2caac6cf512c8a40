"""PURE: the numbers of many lines as columns, of each series all x and all values.

Lines in which the same things stand at the same places are a table, whose rows numpy takes as they are: what a name
costs it costs once a table, and not once a line.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import readings
from .packing import Column, Floats
from .readings import Row, Shape, number_of
from .thinning import joined

Columns = dict[tuple[str, str], Column]  # by name and axis
PLAIN = frozenset({float, int, type(None)})


class Part(NamedTuple):
    """Points of a series; `places`: of the lines that have them, among all."""

    places: NDArray[np.intp]
    xs: Floats
    values: Floats


class Table:
    """The values of lines of one shape; None where one is no number."""

    def __init__(self) -> None:
        self._places: list[int] = []
        self._xs: list[float] = []
        self._rows: list[list[Any]] = []

    def add(self, place: int, row: Row) -> None:
        self._places.append(place)
        self._xs.append(row.x)
        plain = PLAIN.issuperset(map(type, row.values))
        self._rows.append(row.values if plain else [number_of(value) for value in row.values])

    def parts(self) -> Iterator[Part]:
        """Yield the points of each value, which may be none."""
        places, xs = np.array(self._places), np.array(self._xs)
        table = self._array().T
        gaps = set(np.flatnonzero(np.isnan(table).any(axis=1)).tolist())
        for at, values in enumerate(table):
            if at in gaps:  # what is null and what is no number look alike now
                there = np.array([row[at] is not None for row in self._rows])
                yield Part(places[there], xs[there], values[there])
            else:
                yield Part(places, xs, values)

    def _array(self) -> Floats:
        try:
            return np.array(self._rows, np.float64)
        except OverflowError:  # an integer of hundreds of digits
            self._rows = [[number_of(value) for value in row] for row in self._rows]
            return np.array(self._rows, np.float64)


def columns_of(lines: Iterable[readings.Told], names: Container[str] | None = None) -> Columns:
    """Return the points of each series in these lines: by rising x, of one x the later line's.

    `names`: of which series; None: of all.
    """
    tables: dict[tuple[str, Shape], Table] = {}
    for place, line in enumerate(lines):
        if row := readings.laid_out(line):
            if (table := tables.get((row.axis, row.shape))) is None:
                table = tables[row.axis, row.shape] = Table()
            table.add(place, row)
    found: dict[tuple[str, str], list[Part]] = defaultdict(list)
    for (axis, shape), table in tables.items():
        for name, part in zip(readings.names(shape), table.parts(), strict=True):
            if name and len(part.xs) and (names is None or name in names):
                found[name, axis].append(part)
    return {of: _column(parts) for of, parts in found.items()}


def _column(parts: list[Part]) -> Column:
    if len(parts) == 1:
        return joined([Column(parts[0].xs, parts[0].values)])
    places, xs, values = (np.concatenate(same) for same in zip(*parts, strict=True))
    order = np.argsort(places, kind="stable")
    return joined([Column(xs[order], values[order])])
