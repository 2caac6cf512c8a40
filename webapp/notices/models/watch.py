"""The watch on one attempt: when it is looked at, and what a look has to remember of those before."""

from __future__ import annotations

from datetime import datetime

from django.db import models
from django.utils import timezone

from webapp.runs.models import Attempt
from webapp.runs.states import RunState


class WatchSet(models.QuerySet["Watch"]):
    def due(self, now: datetime) -> WatchSet:
        running = self.filter(attempt__run__state=RunState.RUNNING, attempt__ended_at=None)
        return running.filter(due_at__lte=now).order_by("due_at", "pk")


class Watch(models.Model):
    """`due_at` is raised by whoever takes the look. `cursor`: number in the run's journal up to which was looked.
    `memory`: see rules.memory. `looked_at` is the token by which of two that look at once one alone writes.
    """

    attempt = models.OneToOneField(Attempt, on_delete=models.CASCADE, related_name="watch")
    due_at = models.DateTimeField(default=timezone.now, db_index=True)
    looked_at = models.DateTimeField(null=True, blank=True)
    cursor = models.PositiveBigIntegerField(default=0)
    memory = models.JSONField(default=dict)

    objects = WatchSet.as_manager()

    class Meta:
        verbose_name_plural = "watches"

    def __str__(self) -> str:
        return f"watch on {self.attempt}"
