"""The list of runs: what is going on, and does anything need me?"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from ..finding import COLUMNS, Wanted
from ..listing import choices, page
from ..states import RunState

FALLING = {"number", "step", "made", "ended"}  # the greatest first, when first asked for
LABELS = {"number": "number", "name": "name", "step": "step", "loss": "last loss", "made": "made", "ended": "ended"}
ARCHIVED = [("", "not archived"), ("only", "archived alone"), ("all", "both")]


@never_cache
@require_GET
def runs(request: HttpRequest) -> HttpResponse:
    """Answer the page, or its rows alone where the open page asks again."""
    wanted, sort = Wanted.of(request.GET.dict()), request.GET.get("sort", "")
    found, rows = page(wanted, sort, request.GET.get("page", "1"))
    context: dict[str, Any] = {"page": found, "rows": rows, "wanted": wanted}
    if "HX-Request" in request.headers:
        return render(request, "runs/list_rows.html", context)
    known = choices()
    context |= {
        "more": any(value for name, value in asdict(wanted).items() if name not in ("state", "q")),
        "states": RunState.values,
        "choices": known,
        "selects": _selects(wanted, known, sort),
        "sort": sort,
        "heads": {name: _head(name, sort) for name in COLUMNS},
    }
    return render(request, "runs/list.html", context)


@dataclass(frozen=True)
class Select:
    """One way to narrow the list down, or its order. `options`: (value, label)."""

    name: str
    label: str
    value: str
    options: list[tuple[str, str]]


def _selects(wanted: Wanted, known: dict[str, list[str]], sort: str) -> list[Select]:
    lists = {"owner": "owners", "model": "models", "dataset": "datasets", "tag": "tags"}
    found = [_select(name, getattr(wanted, name), known[many]) for name, many in lists.items()]
    orders = [("", "what needs you first")]
    for name, label in LABELS.items():
        orders += [(name, f"{label}, rising"), (f"-{name}", f"{label}, falling")]
    return [*found, Select("archived", "Archived", wanted.archived, ARCHIVED), Select("sort", "Order", sort, orders)]


def _select(name: str, value: str, known: list[str]) -> Select:
    """What is asked for is offered too where no run has it: else the form would ask for something else."""
    values = known if value in ("", *known) else [value, *known]
    label = "Data set" if name == "dataset" else name.capitalize()
    return Select(name, label, value, [("", "any"), *((each, each) for each in values)])


@dataclass(frozen=True)
class Head:
    """A column's head. `turned`: the order that it asks for; `way`: how the list is sorted by it now, or nothing."""

    turned: str
    way: str = ""


def _head(name: str, sort: str) -> Head:
    if sort.removeprefix("-") != name:
        return Head(f"-{name}" if name in FALLING else name)
    return Head(name, "descending") if sort.startswith("-") else Head(f"-{name}", "ascending")
