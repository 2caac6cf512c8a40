"""Uploaded bytes to clean rows, line by line, so that memory stays flat whatever the size."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from training.spec.lint import Problem, Refused

from .rows import BadRow, Shape, Tally, clean, decode, shape_of

BOM = b"\xef\xbb\xbf"
LONGEST_LINE = 16 * 2**20  # one row is held in memory
LISTED = 20
MAGIC = {
    b"\x1f\x8b": ("gzip", "Unpack it first: gunzip FILE."),
    b"PK\x03\x04": ("zip", "Unpack it first."),
    b"PAR1": ("Parquet", "Convert it to JSON Lines."),
    b"\x28\xb5\x2f\xfd": ("Zstandard", "Unpack it first."),
    b"\xff\xfe": ("UTF-16 text", "Save it as UTF-8."),
    b"\xfe\xff": ("UTF-16 text", "Save it as UTF-8."),
}


@dataclass
class Copy:
    """Reads one file into another: `shape` is known after the first good row."""

    name: str
    shape: Shape | None
    tally: Tally = field(default_factory=Tally)
    problems: list[Problem] = field(default_factory=list)
    bad: int = 0
    digest: str = ""
    size: int = 0

    def run(self, source: BinaryIO, target: BinaryIO) -> None:
        """Write every row of `source`, cleaned, to `target`; raise Refused with the first problems and their count."""
        hashed = hashlib.sha256()
        for number, line in _lines(source, self.name):
            if not line.strip():
                self.tally.blank += 1
                continue
            try:
                out = self._row(line)
            except BadRow as error:
                self._note(error, number)
                continue
            hashed.update(out)
            self.size += target.write(out)
        self.digest = hashed.hexdigest()
        self._check()

    def _row(self, line: bytes) -> bytes:
        row = decode(line)
        self.shape = self.shape or shape_of(row)
        kept = clean(row, self.shape, self.tally)
        return json.dumps(kept, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"

    def _note(self, error: BadRow, line: int) -> None:
        self.bad += 1
        if len(self.problems) < LISTED:
            self.problems.append(error.problem(self.name, line))

    def _check(self) -> None:
        if self.bad > LISTED:
            seen = f"{self.bad} of {self.bad + self.tally.rows} rows are bad, the first {LISTED} are listed"
            self.problems.append(Problem(self.name, seen, "Mend the file and upload it again."))
        if not self.bad and not self.tally.rows:
            self.problems.append(Problem(self.name, "it has no rows", "Write one JSON object a line."))
        if self.problems:
            raise Refused(self.problems)


def _lines(source: BinaryIO, name: str) -> Iterator[tuple[int, bytes]]:
    number, line = 1, source.readline(LONGEST_LINE + 1)
    _check_magic(line, name)
    line = line.removeprefix(BOM)
    while line:
        if len(line) > LONGEST_LINE:
            reason = f"it is longer than {LONGEST_LINE >> 20} MiB"
            raise Refused([Problem(f"{name}, line {number}", reason, "Write one row a line; cut what is longer.")])
        yield number, line
        number, line = number + 1, source.readline(LONGEST_LINE + 1)


def _check_magic(start: bytes, name: str) -> None:
    for magic, (what, fix) in MAGIC.items():
        if start.startswith(magic):
            shown = start[: len(magic)].hex(" ")
            raise Refused([Problem(f"{name}, line 1, column 1", f"it is {what} (bytes {shown}), not JSON Lines", fix)])
    if start.strip() == b"[":
        reason = "it is one JSON list, not JSON Lines"
        raise Refused([Problem(f"{name}, line 1", reason, "Write one object a line: jq -c '.[]' FILE.")])
