"""A passport as sections that a person reads: what of the recipe differs, who and what made it, on which machines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from training.spec import presets
from training.spec.passport import AttemptFacts, Loss, NodeFacts, Passport
from webapp.show import size

LONGEST = 300
BYTES = ("bytes", "ram_total", "memory")


@dataclass(frozen=True)
class Section:
    title: str
    facts: list[tuple[str, str]]


def sections(raw: Mapping[str, Any]) -> list[Section]:
    """Return the sections that have something to say; one that says so where it can't be read."""
    try:
        passport = Passport.model_validate(raw)
    except ValidationError as error:
        return [Section("Passport", [("can't be read", f"{error.error_count()} fields are not as expected")])]
    found = [
        Section("Run", list(_run(passport))),
        Section("Recipe, where it differs from its preset", list(_recipe(passport))),
        Section("Base model", _plain(passport.model.model_dump())),
        Section("Data set", _plain(passport.dataset.model_dump())),
        Section("Losses", list(_losses(passport))),
        Section("Cost", _plain(passport.cost.model_dump())),
        *(Section(f"Attempt {attempt.number}", list(_attempt(attempt))) for attempt in passport.attempts),
        *(Section(f"Node {_name(node)}", list(_node(node))) for node in _nodes(passport)),
    ]
    if passport.export:
        found.append(Section("Written by", _plain(passport.export.model_dump())))
    return [section for section in found if section.facts]


def _run(passport: Passport) -> Iterator[tuple[str, str]]:
    yield from _plain(passport.run.model_dump())
    yield "checkpoint", f"{passport.checkpoint.name}, {passport.checkpoint.world_size} ranks"
    yield "composed of", "the service's rows" if passport.composed_of == "rows" else "files on the node"


def _recipe(passport: Passport) -> Iterator[tuple[str, str]]:
    usual = dict(_flat(_preset(passport.run.preset)))
    for name, value in _flat(passport.recipe):
        if name not in usual or usual[name] != value:
            yield name, _word(value) + (f" (preset: {_word(usual[name])})" if name in usual else "")


def _preset(name: str) -> dict[str, Any]:
    """Return the preset's recipe; nothing for one that is gone, so that every field is shown."""
    return presets.load(name).recipe.model_dump(mode="json") if name in presets.names() else {}


def _losses(passport: Passport) -> Iterator[tuple[str, str]]:
    for name in type(passport.losses).model_fields:
        found: Loss | None = getattr(passport.losses, name)
        if found:
            value = found.loss if isinstance(found.loss, str) else f"{found.loss:.4g}"
            yield name.replace("_", " "), f"{value} at step {found.step}"


def _attempt(attempt: AttemptFacts) -> Iterator[tuple[str, str]]:
    if attempt.first_step is not None:
        yield "steps", f"{attempt.first_step} to {attempt.last_step}"
    for name in ("started_at", "ended_at"):
        if moment := getattr(attempt, name):
            yield name.removesuffix("_at"), f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%d %H:%M:%S} UTC"
    rest = attempt.model_dump(include={"restart", "release", "resumed_from", "reason", "restored", "facts"})
    yield from _plain({name: value for name, value in rest.items() if value})


def _nodes(passport: Passport) -> list[NodeFacts]:
    """Return the nodes of the last attempt that has any: those whose weights these are."""
    return next((list(a.nodes) for a in reversed(passport.attempts) if a.nodes), [])


def _name(node: NodeFacts) -> str:
    return node.name or str(node.rank)


def _node(node: NodeFacts) -> Iterator[tuple[str, str]]:
    for number, command in enumerate(node.commands):
        yield "then" if number else "command", " ".join(command)
    yield from _plain(node.hardware)
    yield from _plain(node.versions)
    if node.variables:
        yield "variables", ", ".join(node.variables) + " (values hidden)"


def _plain(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(name, _measured(name, value)) for name, value in _flat(values) if value not in (None, "", [], {})]


def _measured(name: str, value: Any) -> str:
    return size(value) if isinstance(value, int) and name.endswith(BYTES) else _word(value)


def _flat(values: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (dotted name, value) of every leaf."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    if isinstance(value, (list, tuple)):
        return ", ".join(_word(item) for item in value)[:LONGEST]
    return f"{value:.6g}" if isinstance(value, float) else str(value)[:LONGEST]
