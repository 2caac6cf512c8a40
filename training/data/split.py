"""Which rows are held out for evaluation: the same for the same seed, whatever else changes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ..spec.lint import Problem
from .rows import BOM, BadData


def held_out(path: str, share: float, seed: int) -> np.ndarray:
    """Return a flag per row of `path` (blank lines are none): True for `share` of them, at least one.

    Raises BadData where nothing would be left on one side.
    """
    rows = sum(1 for line in _lines(path) if line.strip())
    count = max(1, round(rows * share))
    if rows < 2 or count >= rows:
        why = f"{Path(path).name} has {rows} rows: too few to hold {share:g} of them out"
        raise BadData([Problem("data.test_share", why, "Set it to 0, or give a test file.")])
    drawn = np.fromiter((_draw(seed, row) for row in range(rows)), np.uint64, rows)
    flags = np.zeros(rows, bool)
    flags[np.argsort(drawn, kind="stable")[:count]] = True
    return flags


def _lines(path: str) -> Iterator[bytes]:
    with open(path, "rb") as file:
        for number, line in enumerate(file):
            yield line.removeprefix(BOM) if number == 0 else line


def _draw(seed: int, row: int) -> int:
    # not a library's generator, whose stream may change between versions
    return int.from_bytes(hashlib.blake2b(f"{seed}:{row}".encode(), digest_size=8).digest(), "big")
