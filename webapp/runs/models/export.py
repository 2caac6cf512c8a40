"""The full state dict as a standard model folder, with its proof."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone

from training.spec.faults import Reason
from training.spec.job import FORMATS

from ..states import EXPORT_ENDED, ExportState
from .checkpoint import Checkpoint


class Export(models.Model):
    """`node` holds the result. `files`: [{name, size, sha256}]. `slot`: the node as it was at launch.

    `dtype` is what was asked for, `made_dtype` what it became: `base` is resolved on the node.
    """

    checkpoint = models.ForeignKey(Checkpoint, on_delete=models.PROTECT, related_name="exports")
    dtype = models.CharField(max_length=10, choices=[("base", "as the base model"), *((d, d) for d in FORMATS)])
    made_dtype = models.CharField(max_length=10, blank=True, choices=[(d, d) for d in FORMATS])
    adapter = models.CharField(
        max_length=10,
        choices=[("none", "whole model"), ("merged", "merged into the base"), ("adapter", "adapter alone")],
        default="none",
    )
    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True)
    node = models.ForeignKey("fleet.Node", on_delete=models.PROTECT, null=True, related_name="exports")
    slot = models.JSONField(null=True, blank=True)
    state = models.CharField(max_length=10, choices=ExportState, default=ExportState.QUEUED, db_index=True)
    reason = models.CharField(max_length=30, blank=True, choices=[(r.value, r.value) for r in Reason])
    reason_text = models.TextField(blank=True)
    phase = models.CharField(max_length=20, blank=True)
    done = models.PositiveBigIntegerField(default=0, help_text="Bytes of the present phase.")
    total = models.PositiveBigIntegerField(default=0)
    bytes = models.PositiveBigIntegerField(default=0)
    files = models.JSONField(default=list)
    proof = models.JSONField(default=dict)
    passport = models.JSONField(default=dict, help_text="What made the weights; see training.spec.passport.")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    ended_at = models.DateTimeField(null=True, blank=True)
    lease_owner = models.CharField(max_length=64, blank=True, editable=False)
    lease_until = models.DateTimeField(null=True, blank=True, editable=False)
    due_at = models.DateTimeField(default=timezone.now, db_index=True, editable=False)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"export {self.pk} of {self.checkpoint}"

    @property
    def run(self):
        return self.checkpoint.attempt.run

    @property
    def shown_dtype(self) -> str:
        """What it became; what was asked for where that isn't known yet."""
        return self.made_dtype or self.dtype

    @property
    def has_ended(self) -> bool:
        return self.state in EXPORT_ENDED
