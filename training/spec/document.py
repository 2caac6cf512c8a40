"""docs/recipe.md, made of the recipe's own fields: python -m training schema --markdown > docs/recipe.md"""

from __future__ import annotations

import sys
from inspect import getdoc
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from .recipe import Recipe

HEAD = """\
# The recipe

Made by `python -m training schema --markdown`; the same as JSON Schema by `python -m training schema`.

A recipe is YAML or JSON. Every field has a default, so it holds only what differs. Unknown fields and doubled keys
are refused; so is what nodes can't give, before anything is touched. `python -m training preset NAME` prints a whole
one to begin from.

"""
SIGNS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}


def page() -> str:
    """Return the page, without a last line break."""
    own = {name: info for name, info in Recipe.model_fields.items() if _section(info) is None}
    sections = {name: found for name, info in Recipe.model_fields.items() if (found := _section(info))}
    parts = [_table("(top)", "What belongs to no section.", own)]
    parts += [_table(name, _purpose(kind), kind.model_fields) for name, kind in sections.items()]
    return HEAD + "\n\n".join(parts)


def _section(info: FieldInfo) -> type[BaseModel] | None:
    kind = info.annotation
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _purpose(kind: type[BaseModel]) -> str:
    return (getdoc(sys.modules[kind.__module__]) or "").partition("\n")[0]


def _table(name: str, purpose: str, fields: dict[str, FieldInfo]) -> str:
    rows = [f"| `{field}` | {_kind(info)} | {_default(info)} | {info.description} |" for field, info in fields.items()]
    head = f"## {name}\n\n{purpose}\n\n| field | type and range | default | what it is |\n| --- | --- | --- | --- |\n"
    return head + "\n".join(_cell(row) for row in rows)


def _cell(row: str) -> str:
    return row.replace("\n", " ")


def _default(info: FieldInfo) -> str:
    value = info.get_default(call_default_factory=True)
    if isinstance(value, tuple):
        return f"`[{', '.join(map(str, value))}]`"
    return "empty" if value == "" else f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _kind(info: FieldInfo) -> str:
    bounds = ", ".join(_bounds(info.metadata))
    if get_origin(info.annotation) is tuple:
        bounds = bounds.replace("characters", "of them")
    return ", ".join(filter(None, [_name(info.annotation), bounds]))


def _name(kind: Any) -> str:
    if get_origin(kind) is Annotated:
        return ", ".join([_name(get_args(kind)[0]), *_bounds(_constraints(get_args(kind)[1:]))])
    if get_origin(kind) is Literal:
        return " or ".join(f"`{value}`" for value in get_args(kind))
    if get_origin(kind) is tuple:
        inner = [one for one in get_args(kind) if one is not Ellipsis]
        many = "list of " if Ellipsis in get_args(kind) else f"list of {len(inner)}: "
        return many + _name(inner[0])
    if isinstance(kind, UnionType) or get_origin(kind) is Union:
        return " or ".join(_name(one) for one in get_args(kind))
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return f"{{{', '.join(kind.model_fields)}}}"
    return {int: "integer", float: "number", bool: "true or false", str: "text"}.get(kind, str(kind))


def _constraints(extra: tuple[Any, ...]) -> list[Any]:
    return [rule for info in extra for rule in (info.metadata if isinstance(info, FieldInfo) else [info])]


def _bounds(rules: list[Any]) -> list[str]:
    found = []
    for rule in rules:
        found += [f"{sign} {getattr(rule, word):,}" for word, sign in SIGNS.items() if hasattr(rule, word)]
        if hasattr(rule, "min_length") and rule.min_length:
            found.append(f"at least {rule.min_length:,} characters")
        if hasattr(rule, "max_length") and rule.max_length:
            found.append(f"at most {rule.max_length:,} characters")
        if pattern := getattr(rule, "pattern", None):
            found.append(f"matching `{pattern}`".replace("|", "\\|"))
    return found
