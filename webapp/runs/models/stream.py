"""How far a node's file has been read: the offset is committed with the rows it gave."""

from __future__ import annotations

from django.db import models

from .attempt import Attempt


class Stream(models.Model):
    """One file of one job on one node. `source` is the source of its events.

    `job_kind` and `job_id` name the job of one node that writes it (jobkinds); none: the attempt itself does.
    """

    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="streams")
    job_kind = models.CharField(max_length=10, blank=True)
    job_id = models.PositiveBigIntegerField(null=True, blank=True)
    node = models.ForeignKey("fleet.Node", on_delete=models.PROTECT, related_name="+")
    source = models.CharField(max_length=30)
    path = models.CharField(max_length=1000)
    offset = models.PositiveBigIntegerField(default=0, help_text="Bytes read, always at the end of a line.")
    last_seq = models.PositiveBigIntegerField(default=0)
    closed_at = models.DateTimeField(null=True, blank=True, help_text="The job has ended and all was read.")

    class Meta:
        indexes = [
            models.Index(fields=["closed_at"], condition=models.Q(closed_at=None), name="stream_open"),
            models.Index(fields=["job_kind", "job_id"], name="stream_of_job"),
        ]
        constraints = [models.UniqueConstraint(fields=["attempt", "source"], name="stream_once")]

    def __str__(self) -> str:
        return f"{self.attempt} {self.source} at {self.offset}"
