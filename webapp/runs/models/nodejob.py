"""A supervised job of one node: what an export, a delivery and a trial have in common."""

from __future__ import annotations

from datetime import datetime
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, ClassVar

from django.conf import settings
from django.db import models
from django.utils import timezone

from training.spec.faults import Reason
from training.spec.folder import JobFolder, Scratch

from ..states import JobStates
from .attempt import Attempt
from .stream import Stream

if TYPE_CHECKING:
    from .run import Run


class NodeJob(models.Model):
    """Moved by webapp.runs.lifecycle alone, step by step in workers.nodejob.

    `KIND` names the job's folder (training.spec.folder.NODEJOBS), its events' sources (webapp.runs.sources) and what
    the rest of the house does with it (webapp.runs.jobkinds). `slot` is the node as it was at launch. `lease_*`,
    `due_at`: as of an attempt. A kind names the choices of its `state`.
    """

    KIND: ClassVar[str]
    STATES: ClassVar[JobStates]
    start = 1  # a kind whose jobs are started more than once counts that in a column of this name

    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    node = models.ForeignKey("fleet.Node", on_delete=models.PROTECT, null=True, related_name="+")
    slot = models.JSONField(null=True, blank=True)
    state = models.CharField(max_length=10, default="queued", db_index=True)
    reason = models.CharField(max_length=30, blank=True, choices=[(r.value, r.value) for r in Reason])
    reason_text = models.TextField(blank=True)
    phase = models.CharField(max_length=20, blank=True)
    done = models.PositiveBigIntegerField(default=0, help_text="Bytes of the present phase.")
    total = models.PositiveBigIntegerField(default=0)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    ended_at = models.DateTimeField(null=True, blank=True)
    cancel_asked_at = models.DateTimeField(null=True, blank=True)
    lease_owner = models.CharField(max_length=64, blank=True, editable=False)
    lease_until = models.DateTimeField(null=True, blank=True, editable=False)
    due_at = models.DateTimeField(default=timezone.now, db_index=True, editable=False)

    class Meta:
        abstract = True
        ordering = ["-id"]

    @property
    def attempt(self) -> Attempt:
        """The attempt whose journal tells of the job."""
        raise NotImplementedError

    @property
    def run(self) -> Run:
        return self.attempt.run

    @property
    def asked_at(self) -> datetime:
        """When it was last asked for."""
        return getattr(self, "queued_at", self.created_at)

    @property
    def has_ended(self) -> bool:
        return self.state in self.STATES.ended

    @property
    def was_begun(self) -> bool:
        """Whether anything of it may ever have been put on its node: the rows of its streams come first."""
        return Stream.objects.filter(job_kind=self.KIND, job_id=self.pk).exists()

    @property
    def leaves_something(self) -> bool:
        """Whether it has ended, and may have left on its node what cancelling it removes."""
        return False

    def starting(self) -> dict[str, object]:
        """Return the columns that say when the job was started; stored together with its state."""
        return {}

    @property
    def folder(self) -> JobFolder:
        """Where the job lives on its node, which has been chosen."""
        if self.slot is None:
            raise ValueError(f"{self} has no node yet")
        return Scratch(PurePosixPath(self.slot["scratch"])).nodejob(self.attempt.run_id, self.KIND, self.pk)
