"""Which files of a job are read: their rows are made before the job starts."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from training.spec.folder import JobFolder
from webapp.runs.models import Attempt, Export, Stream

from ..group import Member


def open_for_attempt(attempt: Attempt, members: Iterable[Member]) -> None:
    """Make three streams a node; safe to call twice."""
    for member in members:
        _open(attempt, member, _sources(member.folder, str(member.rank)))


def open_for_export(export: Export, member: Member) -> None:
    sources = {f"export{name}": path for name, path in _sources(member.folder, str(export.pk)).items()}
    sources[f"export@{export.pk}"] = sources.pop(f"exporttrain@{export.pk}")
    _open(export.checkpoint.attempt, member, sources, export)


def _sources(folder: JobFolder, key: str) -> dict[str, str]:
    return {f"train@{key}": str(folder.events), f"node@{key}": str(folder.samples), f"log@{key}": str(folder.log)}


@transaction.atomic
def _open(attempt: Attempt, member: Member, sources: dict[str, str], export: Export | None = None) -> None:
    for source, path in sources.items():
        defaults = {"path": path, "node_id": member.node_id, "export": export}
        Stream.objects.get_or_create(attempt=attempt, source=source, defaults=defaults)


def of_attempt(attempt: Attempt) -> QuerySet[Stream]:
    return Stream.objects.filter(attempt=attempt, export=None, closed_at=None).select_related("attempt")


def of_export(export: Export) -> QuerySet[Stream]:
    return Stream.objects.filter(export=export, closed_at=None).select_related("attempt")


def close(rows: QuerySet[Stream]) -> None:
    rows.update(closed_at=timezone.now())
