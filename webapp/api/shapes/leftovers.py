"""How a leftover looks outside."""

from __future__ import annotations

from datetime import datetime

from ninja import Schema

from webapp.leftovers.models import Leftover


class LeftoverOut(Schema):
    """A job on a node that should not run there. `why`: over (its run is) or unknown (no job of this service).

    `run`, `kind` and `number` are as the folder says, null and empty where it has no name of ours. `problem`: why it
    could not be ended.
    """

    id: int
    node: str
    folder: str
    why: str
    kind: str
    run: int | None
    number: int | None
    supervised: bool
    processes: int
    began_at: datetime
    seen_at: datetime
    end_asked_at: datetime | None
    ended_at: datetime | None
    problem: str

    @classmethod
    def of(cls, row: Leftover) -> LeftoverOut:
        same = ("id", "folder", "why", "kind", "run", "number", "supervised", "processes", "began_at", "seen_at",
                "end_asked_at", "ended_at", "problem")  # fmt: skip
        return cls(node=row.node.name, **{name: getattr(row, name) for name in same})
