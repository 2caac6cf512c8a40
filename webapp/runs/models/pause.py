"""A queue that stands still: runs that are running go on, none is started."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Coalesce
from django.utils import timezone


class Pause(models.Model):
    """Of one cluster's queue, or of all (`cluster` null). One that has ended stays, to tell who did what."""

    cluster = models.ForeignKey("fleet.Cluster", on_delete=models.CASCADE, null=True, blank=True, related_name="pauses")
    by = models.CharField(max_length=150)
    at = models.DateTimeField(default=timezone.now)
    why = models.CharField(max_length=200)
    ended_at = models.DateTimeField(null=True, blank=True)
    ended_by = models.CharField(max_length=150, blank=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                Coalesce("cluster", 0), condition=models.Q(ended_at=None), name="one_pause_of_a_queue"
            )
        ]

    def __str__(self) -> str:
        return f"the queue of {self.cluster or 'all clusters'} paused by {self.by}: {self.why}"
