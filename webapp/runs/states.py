"""The life of a run and of an export, as data. Nothing here touches a row."""

from __future__ import annotations

from django.db import models


class RunState(models.TextChoices):
    DRAFT = "draft"
    QUEUED = "queued"
    PREPARING = "preparing"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    SUCCEEDED = "succeeded"
    STOPPED = "stopped"
    FAILED = "failed"


class ExportState(models.TextChoices):
    QUEUED = "queued"
    GATHERING = "gathering"  # shards of other nodes are brought to the one that exports
    RUNNING = "running"
    READY = "ready"
    FAILED = "failed"


S = RunState
TRANSITIONS: dict[str, frozenset[str]] = {
    S.DRAFT: frozenset({S.QUEUED}),
    S.QUEUED: frozenset({S.PREPARING, S.STOPPED, S.FAILED}),
    S.PREPARING: frozenset({S.STARTING, S.STOPPING, S.FAILED}),
    # stopped without stopping: somebody asked for it on a node
    S.STARTING: frozenset({S.RUNNING, S.STOPPING, S.SUCCEEDED, S.STOPPED, S.FAILED}),
    S.RUNNING: frozenset({S.STOPPING, S.SUCCEEDED, S.STOPPED, S.FAILED}),
    S.STOPPING: frozenset({S.STOPPED, S.SUCCEEDED, S.FAILED}),
    S.SUCCEEDED: frozenset(),
    S.STOPPED: frozenset({S.QUEUED}),
    S.FAILED: frozenset({S.QUEUED}),
}
ENDED = frozenset({S.SUCCEEDED, S.STOPPED, S.FAILED})
ON_NODES = frozenset({S.PREPARING, S.STARTING, S.RUNNING, S.STOPPING})
STOPPABLE = frozenset({S.QUEUED, S.PREPARING, S.STARTING, S.RUNNING})
RESUMABLE = frozenset({S.STOPPED, S.FAILED})

E = ExportState
EXPORT_TRANSITIONS: dict[str, frozenset[str]] = {
    E.QUEUED: frozenset({E.GATHERING, E.FAILED}),
    E.GATHERING: frozenset({E.RUNNING, E.FAILED}),
    E.RUNNING: frozenset({E.READY, E.FAILED}),
    E.READY: frozenset(),
    E.FAILED: frozenset({E.QUEUED}),
}
EXPORT_ENDED = frozenset({E.READY, E.FAILED})


def allowed(old: str, new: str) -> bool:
    return new in TRANSITIONS[old]
