"""Sharded training state at a step."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.urls import reverse
from django.utils import timezone

from training.spec.folder import checkpoint_name

from .attempt import Attempt


class Checkpoints(models.QuerySet[Any]):
    def usable(self) -> Checkpoints:
        """Those that can be resumed from and exported."""
        return self.filter(deleted_at=None, delete_asked_at=None).exclude(completed_at=None)

    def due(self) -> Checkpoints:
        """Those of which a node has yet to do what was asked."""
        return self.filter(settled=False)


class Checkpoint(models.Model):
    """Complete once every node has written its manifest last; only then is it offered.

    What a person asks of it (`pinned`, `delete_asked_at`) is a fact here at once, and done on its nodes by the
    workers: `asked_at` is when something was last asked, `settled` whether all nodes have done it. Once it is asked
    to be deleted it is no longer usable, whatever of it still lies on a node.
    """

    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="checkpoints")
    step = models.PositiveIntegerField()
    nodes = models.PositiveSmallIntegerField()
    world_size = models.PositiveIntegerField()
    created_at = models.DateTimeField(default=timezone.now)
    completed_at = models.DateTimeField(null=True, blank=True)
    deleted_at = models.DateTimeField(null=True, blank=True, help_text="On every node.")

    notes = models.TextField(blank=True, help_text="What people wrote about it.")
    pinned = models.BooleanField(default=False, help_text="Kept, whatever the recipe's rule of retention says.")
    pinned_by = models.CharField(max_length=150, blank=True, help_text="Who pinned or unpinned it last.")
    pinned_at = models.DateTimeField(null=True, blank=True)
    delete_asked_at = models.DateTimeField(null=True, blank=True)
    delete_asked_by = models.CharField(max_length=150, blank=True)
    freed_bytes = models.PositiveBigIntegerField(null=True, blank=True, help_text="On all nodes, measured there.")

    asked_at = models.DateTimeField(null=True, blank=True, editable=False)
    settled = models.BooleanField(default=True, db_index=True, editable=False)
    lease_owner = models.CharField(max_length=64, blank=True, editable=False)
    lease_until = models.DateTimeField(null=True, blank=True, editable=False)
    due_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = Checkpoints.as_manager()

    class Meta:
        ordering = ["attempt", "step"]
        constraints = [models.UniqueConstraint(fields=["attempt", "step"], name="checkpoint_once")]

    def __str__(self) -> str:
        return f"{self.attempt} step {self.step}"

    def get_absolute_url(self) -> str:
        return f"{reverse('runs:checkpoints', args=[self.attempt.run_id])}#checkpoint-{self.pk}"

    @property
    def name(self) -> str:
        return checkpoint_name(self.step)

    @property
    def usable(self) -> bool:
        return self.completed_at is not None and self.deleted_at is None and self.delete_asked_at is None

    @property
    def is_being_deleted(self) -> bool:
        return self.delete_asked_at is not None and self.deleted_at is None

    @property
    def bytes(self) -> int:
        return sum(part.bytes for part in self.parts.all())


class CheckpointPart(models.Model):
    """What one node wrote of it."""

    checkpoint = models.ForeignKey(Checkpoint, on_delete=models.CASCADE, related_name="parts")
    node_rank = models.PositiveSmallIntegerField()
    bytes = models.PositiveBigIntegerField()
    files = models.PositiveIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["checkpoint", "node_rank"], name="part_once")]

    def __str__(self) -> str:
        return f"{self.checkpoint} node {self.node_rank}"
