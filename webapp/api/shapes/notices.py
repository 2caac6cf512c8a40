"""How a notice looks outside."""

from __future__ import annotations

from datetime import datetime

from ninja import Schema

from webapp.notices.models import Notice


class NoticeOut(Schema):
    """What the watch saw. `key`: which node, GPU or metric. `began_at`: since when it has been so; `noticed_at`: when
    that was noticed; `ended_at` null: it still is so. `with_run`: it ended because the run did. `advice`: what to do.
    """

    id: int
    run: int
    attempt: int
    kind: str
    key: str
    figure: str
    text: str
    advice: str
    began_at: datetime
    noticed_at: datetime
    last_seen_at: datetime
    ended_at: datetime | None
    with_run: bool

    @classmethod
    def of(cls, row: Notice) -> NoticeOut:
        same = ("id", "kind", "key", "figure", "text", "advice", "began_at", "noticed_at", "last_seen_at", "ended_at",
                "with_run")  # fmt: skip
        return cls(
            run=row.run_id, attempt=row.attempt.number, **{name: getattr(row, name) for name in same}
        )  # fmt: skip
