"""Where training stands in the data, counted in batches of this launch and kept in rows."""

from __future__ import annotations

from dataclasses import dataclass

from .progress import Progress


@dataclass(frozen=True)
class Stride:
    """How this launch walks through the data. `batches`: per rank and pass; `rows`: that all ranks take at once."""

    batches: int
    rows: int
    accumulation: int


@dataclass
class Position:
    """`epoch` passes are done, and `batch` batches per rank of the next one."""

    epoch: int = 0
    batch: int = 0

    def advance(self, stride: Stride) -> None:
        """Take note of one batch."""
        self.batch += 1
        if self.batch == stride.batches:
            self.epoch, self.batch = self.epoch + 1, 0

    def rows(self, stride: Stride, rows_in_all: int) -> int:
        """Return the rows of this pass that are done."""
        return min(self.batch * stride.rows, rows_in_all)


def found_again(progress: Progress, stride: Stride) -> tuple[Position, int]:
    """Return where this launch goes on, and how many rows it sees again to stand at the start of a step.

    The order of rows depends on seed and pass alone, and the ranks take them in turn: after n batches they
    have seen the first n * stride.rows rows, however many ranks they are.
    """
    step = stride.rows * stride.accumulation
    whole = progress.rows // step * stride.accumulation
    if whole >= stride.batches:
        return Position(progress.epoch + 1, 0), 0
    return Position(progress.epoch, whole), progress.rows - whole * stride.rows
