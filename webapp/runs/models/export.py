"""The full state dict as a standard model folder, with its proof."""

from __future__ import annotations

from django.db import models
from django.urls import reverse
from django.utils import timezone

from training.spec.exportplan import ExportPlan
from training.spec.job import FORMATS

from ..states import EXPORT_STATES, ExportState
from .attempt import Attempt
from .checkpoint import Checkpoint
from .nodejob import NodeJob


class Export(NodeJob):
    """`node` holds the result. `files`: [{name, size, sha256}]. `plan`: training.spec.exportplan as the node told it.

    While it `waits`, it is a plan that somebody looks at: it starts when he says so, and is let go when he doesn't.
    `start` counts how often its job was started on the node, `retried` how often in a row without being asked to.
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

    plan = models.JSONField(default=dict)
    planned_at = models.DateTimeField(null=True, blank=True)
    expected_seconds = models.FloatField(null=True, blank=True, help_text="From the job's start to its end.")
    waits = models.BooleanField(default=False)
    queued_at = models.DateTimeField(default=timezone.now, editable=False)
    running_at = models.DateTimeField(null=True, blank=True, help_text="Of the last start.")
    start = models.PositiveSmallIntegerField(default=1)
    kept = models.PositiveBigIntegerField(
        null=True, blank=True, help_text="Bytes on the node's disk that the next start goes on from; empty: not known."
    )
    retried = models.PositiveSmallIntegerField(default=0)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"export {self.pk} of {self.checkpoint}"

    def get_absolute_url(self) -> str:
        return reverse("exports:detail", args=[self.pk])

    @property
    def attempt(self) -> Attempt:
        return self.checkpoint.attempt

    @property
    def leaves_something(self) -> bool:
        return self.state == self.STATES.failed and self.was_begun

    def starting(self) -> dict[str, object]:
        return {"running_at": timezone.now()}

    @property
    def foretold(self) -> ExportPlan | None:
        """What the node told of it beforehand; None where it was not asked."""
        return ExportPlan.model_validate(self.plan) if self.plan else None

    @property
    def shown_dtype(self) -> str:
        """What it became; what was asked for where that isn't known yet."""
        return self.made_dtype or self.dtype
