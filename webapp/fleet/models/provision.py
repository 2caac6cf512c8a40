"""One making of an interpreter on a node."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from .node import Node


class ProvisionState(models.TextChoices):
    QUEUED = "queued", "queued"
    RUNNING = "running", "running"
    DONE = "done", "done"
    FAILED = "failed", "failed"
    CANCELLED = "cancelled", "cancelled"


ENDED = (ProvisionState.DONE, ProvisionState.FAILED, ProvisionState.CANCELLED)


class Provision(models.Model):
    """Asked for by webapp.fleet.provisioning, done step by step in workers.provision; what the node last told of it.

    `base`: the interpreter to build on, empty until one is chosen there. `python`: what becomes of it. `seconds` and
    `step_seconds` are the node's own, as of `heard_at`. `lease_*`, `due_at`: as of an attempt of a run.
    """

    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="provisions")
    requested_by = models.CharField(max_length=150)
    base = models.CharField(max_length=500, blank=True)
    gpu = models.BooleanField(default=False, help_text="With the packages that nodes with GPUs have besides.")
    python = models.CharField(max_length=600, blank=True)
    state = models.CharField(max_length=10, choices=ProvisionState, default=ProvisionState.QUEUED, db_index=True)
    step = models.CharField(max_length=20, blank=True)
    number = models.PositiveSmallIntegerField(default=0)
    steps = models.PositiveSmallIntegerField(default=0)
    seconds = models.FloatField(default=0)
    step_seconds = models.FloatField(default=0)
    line = models.TextField(blank=True, help_text="What was printed last.")
    tail = models.JSONField(default=list, help_text="The last lines of a step that failed.")
    reason = models.TextField(blank=True)
    fix = models.TextField(blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    heard_at = models.DateTimeField(default=timezone.now, editable=False)
    ended_at = models.DateTimeField(null=True, blank=True)
    cancel_asked_at = models.DateTimeField(null=True, blank=True)
    cancelled_by = models.CharField(max_length=150, blank=True)
    lease_owner = models.CharField(max_length=64, blank=True, editable=False)
    lease_until = models.DateTimeField(null=True, blank=True, editable=False)
    due_at = models.DateTimeField(default=timezone.now, db_index=True, editable=False)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["node"], condition=models.Q(state__in=["queued", "running"]), name="provision_one_a_node"
            )
        ]

    def __str__(self) -> str:
        return f"making of an interpreter on {self.node}"

    @property
    def has_ended(self) -> bool:
        return self.state in ENDED
