"""What the recipe can already say and training does not do: refused, so that no field is silently ignored.

An entry goes when its field is honoured.
"""

from __future__ import annotations

from .recipe import Recipe

UNREADY: tuple[str, ...] = ()


def unready(recipe: Recipe) -> list[str]:
    """Return the fields, as `section.field`, that ask for what training does not do."""
    found = []
    for entry in UNREADY:
        field, _, value = entry.partition("=")
        asked, usual = _at(recipe, field), _at(Recipe(), field)
        if asked == value if value else asked != usual:
            found.append(field)
    return found


def _at(recipe: Recipe, field: str) -> object:
    found: object = recipe
    for name in field.split("."):
        found = getattr(found, name)
    return found
