"""Every rank reads its own rows out of the model folder: nothing is sent, nothing is held twice."""

from __future__ import annotations

from collections.abc import Mapping

from .reader import Files, new_buffer, read_rows
from .shards import Wanted
from .stored import Stored


class Slices:
    """The source where each rank can read the files."""

    def __init__(self, placed: Mapping[str, Stored]):
        self.placed = placed

    def read(self, wanted: list[Wanted]) -> None:
        files, buffer = Files(), new_buffer()
        try:
            for one in wanted:
                read_rows(files, one.stored, one.rows, one.into, buffer)
        finally:
            files.close()
