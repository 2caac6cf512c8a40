"""Nodes with one folder: what is on it is there once, and resumed from without moving a byte."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.e2e.enlist import enlisted

from .case import Told, case
from .field import Field
from .goeson import SHORT, resumed


@case("going on", "two other nodes with one shared folder: kill -9 of a rank, then resumed")
def shared_folder(field: Field) -> Told:
    field.end_long()
    with (
        tempfile.TemporaryDirectory(prefix="shardboard-shared-") as folder,
        enlisted(field.stack, "sharing", Path(folder), 2, shared=True) as hosts,
    ):
        own = Field(field.stack, "sharing", hosts)
        run = own.training("on one folder", steps=14, at=4, checkpoints=SHORT)
        own.rank(run, hosts[1]).kill()
        own.state(run, "failed")
        told = resumed(own, run, 14)
        assert own.books.lost(run) == 0
        assert own.left(run) == 0
        return Told(0, f"{told.saw}; the books of both hold, nothing is left", told.ended)
