"""The life of a run and of a job of one node, as data. Nothing here touches a row."""

from __future__ import annotations

from dataclasses import dataclass

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
    CANCELLED = "cancelled"


@dataclass(frozen=True)
class JobStates:
    """The life of a job of one node, by its kind's own words for `preparing` and `done`; the other words are common.

    A job that failed or was cancelled may be queued once more.
    """

    preparing: str
    done: str
    queued: str = "queued"
    running: str = "running"
    failed: str = "failed"
    cancelled: str = "cancelled"

    @property
    def transitions(self) -> dict[str, frozenset[str]]:
        faults = {self.failed, self.cancelled}
        return {
            self.queued: frozenset({self.preparing, *faults}),
            self.preparing: frozenset({self.running, *faults}),
            self.running: frozenset({self.done, *faults}),
            self.done: frozenset(),
            self.failed: frozenset({self.queued}),
            self.cancelled: frozenset({self.queued}),
        }

    @property
    def ended(self) -> frozenset[str]:
        return frozenset({self.done, self.failed, self.cancelled})


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

EXPORT_STATES = JobStates(preparing=ExportState.GATHERING, done=ExportState.READY)


def allowed(old: str, new: str) -> bool:
    return new in TRANSITIONS[old]
