"""What became of the rows of one file."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from ..spec.lint import Problem
from ..spec.sections.data import Data
from .rows import BadData


@dataclass
class Counts:
    """rows = kept + dropped + untrained. Tokens are those of kept rows.

    cut: kept or untrained rows that lost their end at max_length. trained_tokens: those that a loss is taken of;
    the first of a sample never is, nothing foretells it. longest: tokens of the longest row, before any cut.
    """

    rows: int = 0
    kept: int = 0
    cut: int = 0
    dropped: int = 0
    untrained: int = 0
    sequences: int = 0
    tokens: int = 0
    trained_tokens: int = 0
    longest: int = 0

    def as_dict(self) -> dict[str, int]:
        return asdict(self)

    @property
    def untrained_text(self) -> str:
        """Say how many rows keep no trained token; "" where all do."""
        if not self.untrained:
            return ""
        share = 100 * self.untrained / self.rows
        return f"{share:.3g}% of rows keep no trained token ({self.untrained} of {self.rows}) and are left out"

    def check(self, name: str, data: Data) -> None:
        """Raise BadData where these rows can't be trained on: none, too few trained, a mask that can't be right."""
        problems = list(filter(None, [self._rows_problem(name), self._mask_problem(name, data)]))
        if not problems and self.rows and self.untrained / self.rows > data.untrained_rows:
            limit = f"data.untrained_rows allows {100 * data.untrained_rows:.3g}%"
            fix = "Raise data.max_length so that the answers fit, or mend the rows; or raise data.untrained_rows."
            problems = [Problem("data.untrained_rows", f"{name}: {self.untrained_text}, and {limit}", fix)]
        if problems:
            raise BadData(problems)

    def _rows_problem(self, name: str) -> Problem | None:
        if not self.rows:
            return Problem("data", f"{name}: it has no rows", "Upload a file with at least one row.")
        if self.dropped == self.rows:
            why = f"{name}: every row has more than max_length tokens, the longest {self.longest}"
            return Problem("data.on_long", why, "Raise data.max_length, or set data.on_long to cut.")
        return None

    def _mask_problem(self, name: str, data: Data) -> Problem | None:
        if data.train_on == "everything" or self.untrained or not self.kept:
            return None
        if self.trained_tokens < self.tokens - self.kept:  # else all but each sample's first token are trained
            return None
        why = f"{name}: every token would be trained, not only the {data.train_on}'s"
        return Problem("data.train_on", why, "Choose everything where that is meant, or give data.template.")
