"""One look at the nodes of a cluster."""

from __future__ import annotations

from django.db import models
from django.urls import reverse
from django.utils import timezone

from webapp.fleet.models import Cluster
from webapp.runs.models import Attempt


class Preflight(models.Model):
    """What it found is in its cells, one for each check and node, which are there from the beginning and fill in.

    `attempt`: before whose launch it was made; null: a person asked. `lease_*`, `due_at`: as an attempt's.
    `signature`: of the nodes as they were when their ports had been found open both ways; empty otherwise.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="preflights")
    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, null=True, blank=True, related_name="preflights")
    asked_by = models.CharField(max_length=150)
    asked_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True, blank=True)
    signature = models.CharField(max_length=64, blank=True, db_index=True)
    lease_owner = models.CharField(max_length=64, blank=True, editable=False)
    lease_until = models.DateTimeField(null=True, blank=True, editable=False)
    due_at = models.DateTimeField(default=timezone.now, db_index=True, editable=False)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"preflight {self.pk} of {self.cluster}"

    def get_absolute_url(self) -> str:
        return reverse("preflights:page", args=[self.cluster.name]) + f"?id={self.pk}"
