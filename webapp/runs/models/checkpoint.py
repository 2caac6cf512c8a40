"""Sharded training state at a step."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from training.spec.folder import checkpoint_name

from .attempt import Attempt


class Checkpoint(models.Model):
    """Complete once every node has written its manifest last; only then is it offered."""

    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="checkpoints")
    step = models.PositiveIntegerField()
    nodes = models.PositiveSmallIntegerField()
    world_size = models.PositiveIntegerField()
    created_at = models.DateTimeField(default=timezone.now)
    completed_at = models.DateTimeField(null=True, blank=True)
    deleted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["attempt", "step"]
        constraints = [models.UniqueConstraint(fields=["attempt", "step"], name="checkpoint_once")]

    def __str__(self) -> str:
        return f"{self.attempt} step {self.step}"

    @property
    def name(self) -> str:
        return checkpoint_name(self.step)

    @property
    def usable(self) -> bool:
        return self.completed_at is not None and self.deleted_at is None

    @property
    def bytes(self) -> int:
        return sum(part.bytes for part in self.parts.all())


class CheckpointPart(models.Model):
    """What one node holds of it."""

    checkpoint = models.ForeignKey(Checkpoint, on_delete=models.CASCADE, related_name="parts")
    node_rank = models.PositiveSmallIntegerField()
    bytes = models.PositiveBigIntegerField()
    files = models.PositiveIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["checkpoint", "node_rank"], name="part_once")]

    def __str__(self) -> str:
        return f"{self.checkpoint} node {self.node_rank}"
