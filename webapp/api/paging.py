"""Lists: {"items": [...], "next": cursor or null}. A cursor is signed, opaque, and names the last row shown."""

from __future__ import annotations

from typing import Annotated, Generic, TypeVar

from django.core import signing
from django.db.models import Model, QuerySet
from ninja import Query, Schema

from .problems import Stop

SALT = "api.cursor"
T = TypeVar("T")
M = TypeVar("M", bound=Model)
Limit = Annotated[int, Query(ge=1, le=200, description="Rows a page holds at most.")]
Cursor = Annotated[str, Query(max_length=300, description="`next` of the page before.")]


class Page(Schema, Generic[T]):
    """`next` is null on the last page."""

    items: list[T]
    next: str | None = None


def newest_first(rows: QuerySet[M], cursor: str, limit: int) -> tuple[list[M], str | None]:
    """Return one page by falling id, and the cursor of the next."""
    if cursor:
        rows = rows.filter(pk__lt=_read(cursor))
    found = list(rows.order_by("-pk")[: limit + 1])
    more = len(found) > limit
    return found[:limit], signing.dumps(found[limit - 1].pk, salt=SALT) if more else None


def _read(cursor: str) -> int:
    try:
        return int(signing.loads(cursor, salt=SALT))
    except (signing.BadSignature, ValueError, TypeError):
        raise Stop(
            422, "cursor", "it is no cursor of ours", "Use `next` of an earlier page, or leave it out."
        ) from None
