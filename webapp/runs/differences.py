"""What differs between runs: between two, as edits; between many, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .actions import Order
from .models import Run
from .queue.wish import shown


class Edit(NamedTuple):
    """One field that changed: as it was in the source, and as it is."""

    key: str
    old: Any
    new: Any


def flat(recipe: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Return {dotted path: value} of a nested recipe."""
    out: dict[str, Any] = {}
    for key, value in recipe.items():
        out |= flat(value, f"{above}{key}.") if isinstance(value, dict) else {f"{above}{key}": value}
    return out


def choices(chosen: Run | Order) -> dict[str, Any]:
    """Return what was chosen beside the recipe, by its name in the new-run form."""
    beside = {name: str(getattr(chosen, name)) for name in ("preset", "model", "dataset", "cluster")}
    wish = chosen.wished() if isinstance(chosen, Run) else chosen.wish
    return beside | {name: value for name, value in shown(wish).items() if value}


def edits(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Edit]:
    """Return the keys whose values are not the same, in the order of `new`, then what only `old` has."""
    keys = dict.fromkeys([*new, *old])
    return [Edit(key, old.get(key), new.get(key)) for key in keys if old.get(key) != new.get(key)]


def between(source: Run, clone: Run | Order, recipe: Mapping[str, Any]) -> list[Edit]:
    """Return what is otherwise in `clone`, whose whole recipe is `recipe`, than in its source."""
    return edits(choices(source), choices(clone)) + edits(flat(source.recipe), flat(recipe))


def side_by_side(columns: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[Any]]]:
    """Return (key, its value in each column, None where it has none) of those that are not the same in all."""
    keys = dict.fromkeys(key for column in columns for key in column)
    rows = ((key, [column.get(key) for column in columns]) for key in keys)
    return [(key, values) for key, values in rows if any(value != values[0] for value in values)]
