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
    PLANNING = "planning"  # the node is asked what it will be
    PLANNED = "planned"  # and somebody what he thinks of it
    GATHERING = "gathering"  # shards of other nodes are brought to the one that exports
    RUNNING = "running"
    READY = "ready"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True)
class JobStates:
    """The life of a job of one node, by its kind's own words for `preparing` and `done`; the other words are common.

    A job that failed or was cancelled may be queued once more. A kind that foretells what it will do has words for
    asking (`planning`) and for waiting until that is agreed to (`planned`), from where it may be asked again.
    """

    preparing: str
    done: str
    planning: str = ""
    planned: str = ""
    queued: str = "queued"
    running: str = "running"
    failed: str = "failed"
    cancelled: str = "cancelled"

    @property
    def transitions(self) -> dict[str, frozenset[str]]:
        faults = {self.failed, self.cancelled}
        foretelling = {
            self.queued: frozenset({self.planning, self.preparing, *faults}),
            self.planning: frozenset({self.planned, self.preparing, *faults}),
            self.planned: frozenset({self.queued, self.preparing, *faults}),
        }
        return self._common(faults) | (foretelling if self.planning else {})

    def _common(self, faults: set[str]) -> dict[str, frozenset[str]]:
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

EXPORT_STATES = JobStates(
    preparing=ExportState.GATHERING,
    done=ExportState.READY,
    planning=ExportState.PLANNING,
    planned=ExportState.PLANNED,
)


def allowed(old: str, new: str) -> bool:
    return new in TRANSITIONS[old]
