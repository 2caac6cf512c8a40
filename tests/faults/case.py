"""A case of the fault matrix: something goes wrong, and what became of it is written down."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .field import Field


@dataclass(frozen=True)
class Told:
    """What a case tells. `run`: whose books are held against each other, 0 where none came about; `saw`: in the words
    of the page; `ended`: the run's state and reason; `seconds`: from the fault until the page or the API told of it.
    """

    run: int
    saw: str
    ended: str
    seconds: float | None = None


@dataclass(frozen=True)
class Record:
    """One line of the table. `lost`, `left`: lines of nodes without a row, processes; None where that can't be."""

    group: str
    name: str
    done: str
    saw: str
    ended: str
    seconds: float | None
    lost: int | None
    left: int | None
    took: float
    failed: str = ""

    @property
    def good(self) -> bool:
        return not (self.failed or self.lost or self.left)


@dataclass(frozen=True)
class Case:
    """`do` breaks something and asserts what has to become of it."""

    group: str
    name: str
    done: str
    do: Callable[[Field], Told]


CASES: dict[str, Case] = {}


def case(group: str, done: str) -> Callable[[Callable[[Field], Told]], Callable[[Field], Told]]:
    """Make a case of a function, named as it is; `done`: what was done, for the table."""

    def keep(do: Callable[[Field], Told]) -> Callable[[Field], Told]:
        assert do.__name__ not in CASES
        CASES[do.__name__] = Case(group, do.__name__, done, do)
        return do

    return keep


def play(chosen: Case, field: Field) -> Record:
    """Do it, then hold the books against each other and look for what is left."""
    began = time.monotonic()
    told, lost, left, failed = Told(0, "", ""), None, None, ""
    try:
        told = chosen.do(field)
        if told.run:
            lost, left = field.books.lost(told.run), field.left(told.run)
    except Exception as error:  # noqa: BLE001  a case that fails is a line of the table
        failed = f"{type(error).__name__}: {error}"
    finally:
        field.mend()
    took = time.monotonic() - began
    saw = field.plain(told.saw)
    return Record(chosen.group, chosen.name, chosen.done, saw, told.ended, told.seconds, lost, left, took, failed)


def write(records: list[Record], path: Path) -> None:
    path.write_text(json.dumps([asdict(record) for record in records], indent=1) + "\n", "utf-8")


def read(path: Path) -> list[Record]:
    """Return the records in `path`; none where there is no such file."""
    return [Record(**found) for found in json.loads(path.read_text("utf-8"))] if path.exists() else []
