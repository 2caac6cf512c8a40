"""What differs between runs: what was chosen, their recipes, and what their passports would say of how they ran."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from training.spec.passport import hardware, versions

from ..differences import choices, flat, side_by_side
from ..models import Attempt, Placement, Run

DULL = ("started", "pid")  # of an attempt's facts: never the same


@dataclass(frozen=True)
class Section:
    """`rows`: (name, its value in each run) of what isn't the same in all; `same`: how many others are."""

    title: str
    rows: list[tuple[str, list[Any]]]
    same: int


def sections(runs: Sequence[Run]) -> list[Section]:
    newest = _newest(runs)
    places = _places(newest.values())
    return [
        _section("What was chosen", [_chosen(run) for run in runs]),
        _section("Recipe", [flat(run.recipe) for run in runs]),
        _section("How it ran", [_ran(run, newest.get(run.pk)) for run in runs]),
        _section("On which machines", [_machines(places.get(run.pk, [])) for run in runs]),
    ]


def _section(title: str, columns: Sequence[Mapping[str, Any]]) -> Section:
    rows = side_by_side(columns)
    return Section(title, rows, len({key for column in columns for key in column}) - len(rows))


def _chosen(run: Run) -> dict[str, Any]:
    model, version = run.model, run.dataset
    more = {"model's place": model.location, "model's revision": model.revision, "data set's SHA-256": version.digest}
    return choices(run) | {name: value for name, value in more.items() if value}


def _ran(run: Run, attempt: Attempt | None) -> dict[str, Any]:
    told = {"reason": run.reason} if run.reason else {}
    if attempt is None:
        return told
    own = {"attempts": attempt.number, "code": attempt.release[:12], "ranks": attempt.world_size or None}
    facts = {name: value for name, value in flat(attempt.facts).items() if name not in DULL}
    return told | {name: value for name, value in own.items() if value} | facts


def _machines(places: Sequence[Placement]) -> dict[str, Any]:
    """Return what the nodes of an attempt are: what all say once, else what each says."""
    found: dict[str, dict[str, None]] = {}
    for place in places:
        check = place.facts.get("check") or place.node.facts
        told = {"nodes": place.node.name, **_hardware(check), **flat(versions(check))}
        for name, value in told.items():
            found.setdefault(name, {})[_word(value)] = None
    return {name: ", ".join(values) for name, values in found.items()}


def _hardware(check: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the machine is, its GPUs by kind; not its name, which is the node's."""
    found = hardware(check)
    kinds = Counter(str(gpu.get("name", "GPU")) for gpu in found.pop("gpus"))
    found.pop("hostname", None)
    return found | (
        {"gpus": [f"{count} \N{MULTIPLICATION SIGN} {kind}" for kind, count in kinds.items()]} if kinds else {}
    )


def _word(value: Any) -> str:
    return ", ".join(map(_word, value)) if isinstance(value, list) else str(value)[:200]


def _newest(runs: Sequence[Run]) -> dict[int, Attempt]:
    return {attempt.run_id: attempt for attempt in Attempt.objects.filter(run__in=runs).order_by("number")}


def _places(attempts: Any) -> dict[int, list[Placement]]:
    found: dict[int, list[Placement]] = {}
    rows = Placement.objects.filter(attempt__in=list(attempts)).select_related("node", "attempt")
    for place in rows.order_by("attempt", "rank"):
        found.setdefault(place.attempt.run_id, []).append(place)
    return found
