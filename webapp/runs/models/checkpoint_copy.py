"""A checkpoint's folder on one node's disk, as the node itself answered."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from training.spec.plan import NodeSlot

from .checkpoint import Checkpoint


class CheckpointCopy(models.Model):
    """Made when something is first asked of the checkpoint; `slot` says with which scratch folder and Python.

    Null is what the node has not been asked yet. `freed_bytes` is measured and stored before the deletion begins, so
    that one which is cut off and done again still knows what it freed.
    """

    checkpoint = models.ForeignKey(Checkpoint, on_delete=models.CASCADE, related_name="copies")
    node = models.ForeignKey("fleet.Node", on_delete=models.PROTECT, related_name="checkpoint_copies")
    scratch = models.CharField(max_length=500)
    slot = models.JSONField()
    bytes = models.PositiveBigIntegerField(null=True, blank=True, help_text="Of all files there; 0: it is not there.")
    parts = models.JSONField(null=True, blank=True, help_text="Node ranks whose manifests lie there.")
    pinned = models.BooleanField(null=True, blank=True)
    freed_bytes = models.PositiveBigIntegerField(null=True, blank=True)
    deleted_at = models.DateTimeField(null=True, blank=True, help_text="The node said that nothing is left.")
    problem = models.TextField(blank=True, help_text="Why the node has not done it yet.")
    answered_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["checkpoint", "id"]
        verbose_name_plural = "checkpoint copies"
        constraints = [models.UniqueConstraint(fields=["checkpoint", "node", "scratch"], name="copy_once")]

    def __str__(self) -> str:
        return f"{self.checkpoint} on {self.node}"

    def node_slot(self) -> NodeSlot:
        return NodeSlot(**self.slot)
