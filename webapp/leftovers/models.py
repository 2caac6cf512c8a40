"""What was found on nodes that should not run there, and when each node was last asked."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from webapp.fleet.models import Node

# A look whose message got lost, or whose worker died, is sent again after this.
LOST_SECONDS = 120


class NodeLook(models.Model):
    """When a node is to be asked what runs there. `due_at` is raised by whoever sends the look."""

    node = models.OneToOneField(Node, on_delete=models.CASCADE, related_name="look")
    due_at = models.DateTimeField(default=timezone.now, db_index=True)
    asked_at = models.DateTimeField(null=True, blank=True)
    problem = models.TextField(blank=True, help_text="Why it could not be asked the last time; empty: it was.")

    def __str__(self) -> str:
        return f"what runs on {self.node}"


class Leftover(models.Model):
    """A job that runs on a node though its run is over, or is none of this service's.

    Found by workers.leftovers; ended only where a person asks for it, and only by its own folder. `kind`, `run` and
    `number` are as its folder says (training.spec.jobname); `run` is no foreign key: it may be another service's.
    """

    class Why(models.TextChoices):
        OVER = "over", "its run is over"
        UNKNOWN = "unknown", "this service knows of no such job"

    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="leftovers")
    folder = models.CharField(max_length=1000)
    why = models.CharField(max_length=10, choices=Why)
    kind = models.CharField(max_length=20, blank=True)
    run = models.PositiveBigIntegerField(null=True)
    number = models.PositiveBigIntegerField(null=True)
    supervised = models.BooleanField(default=False, help_text="Its supervisor lives.")
    processes = models.PositiveIntegerField(default=0, help_text="Besides the supervisor.")
    began_at = models.DateTimeField(help_text="Of its oldest process.")
    found_at = models.DateTimeField(default=timezone.now)
    seen_at = models.DateTimeField(default=timezone.now)
    end_asked_at = models.DateTimeField(null=True, blank=True)
    end_asked_by = models.CharField(max_length=150, blank=True)
    end_due_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    problem = models.TextField(blank=True, help_text="Why it could not be ended.")

    class Meta:
        ordering = ["node__name", "folder"]
        constraints = [models.UniqueConstraint(fields=["node", "folder"], name="leftover_once")]

    def __str__(self) -> str:
        return f"{self.folder} on {self.node}"

    @property
    def ending(self) -> bool:
        """Whether its end was asked for and is still waited for."""
        return bool(self.end_asked_at and not self.ended_at and not self.problem)
