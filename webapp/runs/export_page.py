"""What an export's page shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from training.spec.sections.export import FORMATS

from . import expected, serving, sources
from .models import Event, Export
from .passport_page import sections
from .states import ExportState

Context = dict[str, Any]
STEPS = {
    ExportState.QUEUED: "queued",
    ExportState.PLANNING: "plan",
    ExportState.GATHERING: "bring shards",
    "check": "check",
    "stream": "write",
    "prove": "prove",
}
WORDS = {"cancel": "cancel asked", "start": "started", "resume": "resumed"}


def whole(export: Export, site: str) -> Context:
    """Return everything; `site`: this service's address, which a download by hand needs."""
    return planned(export) | {
        "run": export.run,
        "steps": list(_steps(export)),
        "held": expected.held(export),
        "history": _history(export),
        "archive": f"{site}api/v1/exports/{export.pk}/archive",
        "serving": serving.of(export) if export.state == ExportState.READY else [],
        "passport": sections(export.passport) if export.passport else [],
        "has_card": any(file["name"] == "README.md" for file in export.files),
        "warning": _warning(export),
    }


def planned(export: Export) -> Context:
    return {
        "export": export,
        "plan": export.foretold,
        "progress": expected.progress(export),
        "took": expected.took(export),
        "dtypes": _dtypes(export),
    }


def _dtypes(export: Export) -> list[tuple[str, int, bool]]:
    """Return each number format with the bytes that the weights take in it, and whether it is this one."""
    plan = export.foretold
    sizes = plan.writing.sizes if plan else {}
    return [(name, sizes[name], name == plan.writing.dtype) for name in FORMATS if plan and name in sizes]


def _steps(export: Export) -> Iterator[tuple[str, str]]:
    """Yield each step's name, and whether it is `done`, `now` or to `come`."""
    here = export.phase if export.state == ExportState.RUNNING and export.phase in STEPS else export.state
    here = "check" if here == ExportState.RUNNING else here
    names = list(STEPS)
    waits = here == ExportState.PLANNED
    at = names.index(ExportState.GATHERING if waits else here) if waits or here in names else len(names)
    for number, name in enumerate(names):
        yield STEPS[name], "done" if number < at else "now" if number == at and not waits else "come"


def _history(export: Export) -> list[Context]:
    """Return what became of it, newest first: moves, and what was asked by whom."""
    source = sources.state(export.KIND, export.pk)
    rows = Event.objects.filter(attempt=export.attempt, source=source).order_by("-number")
    return [
        {
            "at": row.at,
            "what": WORDS.get(row.data.get("asked", ""), row.data.get("new", "")),
            "actor": row.data.get("actor", ""),
            "reason": row.data.get("reason", ""),
        }
        for row in rows
    ]


def _warning(export: Export) -> str:
    """Return the newest warning of its own; empty where there is none."""
    source = sources.events(export.KIND, export.pk)
    row = Event.objects.filter(attempt=export.attempt, source=source, kind="warning").order_by("-seq").first()
    return str(row.data.get("text", "")) if row else ""
