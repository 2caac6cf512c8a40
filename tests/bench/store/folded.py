"""The chunks that a long series becomes when it is folded a piece at a time, found without the database between.

Folding 10,000,000 points takes minutes, nearly all of it for rows that the next merge deletes.
"""

from __future__ import annotations

from collections.abc import Iterator

from webapp.runs.levels import LOOSE
from webapp.runs.packing import Column
from webapp.runs.thinning import cut, joined
from webapp.runs.tower import FULL, above, pieces


def folded(column: Column, each: int) -> Iterator[tuple[int, bool, Column]]:
    """Yield (level, loose, points) of the chunks that are there when `each` points at a time have been added."""
    loose = [cut(column, first, first + each) for first in range(0, len(column.xs), each)]
    level = 0
    while loose:
        higher = list[Column]()
        whole = len(loose) // LOOSE * LOOSE
        for first in range(0, whole, LOOSE):
            merged = joined(loose[first : first + LOOSE])
            assert len(merged.xs) >= FULL, "pieces so small are merged more than once on their level"
            for piece in pieces(merged):
                yield level, False, piece
            higher.append(above(merged))
        for piece in loose[whole:]:
            yield level, True, piece
        loose, level = higher, level + 1
