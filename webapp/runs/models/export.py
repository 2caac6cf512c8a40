"""The full state dict as a standard model folder, with its proof."""

from __future__ import annotations

from django.db import models

from training.spec.job import FORMATS

from ..states import EXPORT_STATES, ExportState
from .attempt import Attempt
from .checkpoint import Checkpoint
from .nodejob import NodeJob


class Export(NodeJob):
    """`node` holds the result. `files`: [{name, size, sha256}].

    `dtype` is what was asked for, `made_dtype` what it became: `base` is resolved on the node.
    """

    KIND = "export"
    STATES = EXPORT_STATES

    checkpoint = models.ForeignKey(Checkpoint, on_delete=models.PROTECT, related_name="exports")
    dtype = models.CharField(max_length=10, choices=[("base", "as the base model"), *((d, d) for d in FORMATS)])
    made_dtype = models.CharField(max_length=10, blank=True, choices=[(d, d) for d in FORMATS])
    adapter = models.CharField(
        max_length=10,
        choices=[("none", "whole model"), ("merged", "merged into the base"), ("adapter", "adapter alone")],
        default="none",
    )
    state = models.CharField(max_length=10, choices=ExportState, default=ExportState.QUEUED, db_index=True)
    bytes = models.PositiveBigIntegerField(default=0)
    files = models.JSONField(default=list)
    proof = models.JSONField(default=dict)
    passport = models.JSONField(default=dict, help_text="What made the weights; see training.spec.passport.")

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"export {self.pk} of {self.checkpoint}"

    @property
    def attempt(self) -> Attempt:
        return self.checkpoint.attempt

    @property
    def shown_dtype(self) -> str:
        """What it became; what was asked for where that isn't known yet."""
        return self.made_dtype or self.dtype
