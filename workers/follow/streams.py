"""Which files of a job are read: their rows are made before the job starts."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from training.spec.folder import JobFolder
from webapp.runs import jobkinds, sources
from webapp.runs.models import Attempt, NodeJob, Stream
from webapp.runs.states import ON_NODES

from ..group import Member


def open_for_attempt(attempt: Attempt, members: Iterable[Member]) -> None:
    """Make three streams a node; safe to call twice."""
    for member in members:
        _open(attempt, member, _sources(member.folder, str(member.rank)))


def open_for_job(job: NodeJob, member: Member) -> None:
    """Make the three streams of a job of one node, or open those of its earlier start; safe to call twice."""
    kind, folder = job.KIND, member.folder
    paths = {
        sources.events(kind, job.pk): str(folder.events),
        sources.node(kind, job.pk): str(folder.samples),
        sources.log(kind, job.pk): str(folder.log),
    }
    _open(job.attempt, member, paths, job_kind=kind, job_id=job.pk)
    Stream.objects.filter(job_kind=kind, job_id=job.pk).update(closed_at=None)


def _sources(folder: JobFolder, key: str) -> dict[str, str]:
    return {f"train@{key}": str(folder.events), f"node@{key}": str(folder.samples), f"log@{key}": str(folder.log)}


@transaction.atomic
def _open(attempt: Attempt, member: Member, paths: dict[str, str], **job: str | int) -> None:
    for source, path in paths.items():
        defaults = {"path": path, "node_id": member.node_id, **job}
        Stream.objects.get_or_create(attempt=attempt, source=source, defaults=defaults)


def of_attempt(attempt: Attempt) -> QuerySet[Stream]:
    return Stream.objects.filter(attempt=attempt, job_kind="", closed_at=None).select_related("attempt")


def of_job(job: NodeJob) -> QuerySet[Stream]:
    rows = Stream.objects.filter(job_kind=job.KIND, job_id=job.pk, closed_at=None)
    return rows.select_related("attempt")


def close(rows: QuerySet[Stream]) -> None:
    rows.update(closed_at=timezone.now())


def followed() -> dict[int, int]:
    """Return the open streams of jobs that run, each with its node."""
    rows = Stream.objects.filter(closed_at=None)
    found = dict(rows.filter(job_kind="", attempt__run__state__in=ON_NODES).values_list("pk", "node_id"))
    for kind in set(rows.exclude(job_kind="").values_list("job_kind", flat=True)):
        model = jobkinds.of(kind).model
        running = model._default_manager.filter(state=model.STATES.running).values("pk")
        found |= dict(rows.filter(job_kind=kind, job_id__in=running).values_list("pk", "node_id"))
    return found


def loaded(numbers: Iterable[int]) -> list[Stream]:
    """Return these streams with what storing their lines needs."""
    return list(Stream.objects.filter(pk__in=list(numbers)).select_related("attempt"))
