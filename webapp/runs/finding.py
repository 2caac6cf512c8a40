"""Which runs a list shows, and in which order: the same for the page and the API, on SQLite and PostgreSQL.

A loss that is not finite is neither less nor more than another: such runs come behind those that can be compared,
whichever way they are sorted, and before those that have none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Case, Exists, F, IntegerField, OuterRef, Q, QuerySet, Value, When
from django.db.models.functions import Lower
from django.utils import timezone

from webapp.datasets.models import Version

from .models import ModelSource, Run, Tag
from .states import ON_NODES, RunState

NEEDS_SOMEONE_FOR = timedelta(days=3)
UNDER_WAY = [*ON_NODES, RunState.QUEUED]
LONGEST = 200
COLUMNS = {
    "number": "pk",
    "name": "name",
    "step": "step",
    "loss": "sketch__last",
    "made": "created_at",
    "ended": "ended_at",
}


@dataclass(frozen=True)
class Wanted:
    """What is asked for, as an address has it; empty: any. `archived`: empty: those that are not, `only`, `all`."""

    state: str = ""
    q: str = ""
    tag: str = ""
    owner: str = ""
    model: str = ""
    dataset: str = ""
    archived: str = ""

    @classmethod
    def of(cls, asked: Mapping[str, Any]) -> Wanted:
        return cls(**{name: str(asked.get(name, "")).strip()[:LONGEST] for name in cls.__dataclass_fields__})

    def __bool__(self) -> bool:
        return any(asdict(self).values())


def matching(wanted: Wanted) -> QuerySet[Run]:
    """Return the runs that match, in no order."""
    rows = Run.objects.all()
    if "\0" in "".join(asdict(wanted).values()):
        return rows.none()  # no database holds it
    if wanted.archived != "all":
        rows = rows.filter(archived_at__isnull=wanted.archived != "only")
    for condition in _conditions(wanted):
        rows = rows.filter(condition)
    return rows


def _conditions(wanted: Wanted) -> list[Q]:
    """Names are looked up first, each a short table: what is left is asked of the runs' own columns."""
    found = []
    if wanted.state:
        found.append(Q(state=wanted.state))
    if wanted.owner:
        found.append(Q(owner__in=_keys(User.objects.filter(username=wanted.owner))))
    if wanted.model:
        found.append(Q(model__in=_keys(ModelSource.objects.filter(name=wanted.model))))
    if wanted.dataset:
        found.append(Q(dataset__in=_keys(Version.objects.filter(dataset__name=wanted.dataset))))
    if wanted.tag:
        found.append(Q(Exists(Tag.objects.filter(name=Tag.kept(wanted.tag), run=OuterRef("pk")))))
    if wanted.q:
        found.append(_text(wanted.q))
    return found


def _text(query: str) -> Q:
    number = Q(pk=int(query)) if query.isdecimal() and query.isascii() and len(query) < 10 else Q()
    owners = _keys(User.objects.filter(username__icontains=query))
    return Q(name__icontains=query) | Q(owner__in=owners) | number


def _keys(rows: QuerySet[Any]) -> list[int]:
    return list(rows.values_list("pk", flat=True))


def in_order(rows: QuerySet[Run], sort: str) -> QuerySet[Any]:
    """Return `rows` sorted by a column of COLUMNS, falling with a `-` before it; else by `rank`, which all get."""
    found, name = ranked(rows), sort.removeprefix("-")
    if name not in COLUMNS:
        return found.order_by("rank", "-pk")
    column = Lower("name") if name == "name" else F(COLUMNS[name])
    order = column.desc(nulls_last=True) if sort.startswith("-") else column.asc(nulls_last=True)
    if name == "loss":
        return found.order_by(_kind(), order, "-pk")
    return found.order_by(order, "-pk")


def _kind() -> Case:
    """0: has a last loss that can be compared, 1: one that is not finite, 2: none."""
    finite, odd = When(sketch__last__isnull=False, then=Value(0)), When(sketch__isnull=False, then=Value(1))
    return Case(finite, odd, default=Value(2), output_field=IntegerField())


def ranked(rows: QuerySet[Run]) -> QuerySet[Any]:
    """Annotate `rank`: 0 needs someone, 1 under way, 2 the rest."""
    lately = timezone.now() - NEEDS_SOMEONE_FOR
    needs = Q(state=RunState.FAILED, ended_at__gte=lately) | Q(pk__in=_keys(_troubled()))
    return rows.annotate(
        rank=Case(
            When(needs, then=Value(0)),
            When(state__in=UNDER_WAY, then=Value(1)),
            default=Value(2),
            output_field=IntegerField(),
        )
    )


def _troubled() -> QuerySet[Run]:
    """Return the runs at work that have a node which can't be reached, or an open notice."""
    working = Run.objects.filter(state__in=ON_NODES).order_by()
    lost = working.filter(attempts__ended_at=None, attempts__placements__unreachable_since__isnull=False)
    return lost.union(working.filter(notices__isnull=False, notices__ended_at=None))
