"""How far a node's file has been read: the offset is committed with the rows it gave."""

from __future__ import annotations

from django.db import models

from .attempt import Attempt
from .export import Export


class Stream(models.Model):
    """One file of one job on one node. `source` is the source of its events."""

    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="streams")
    export = models.ForeignKey(Export, on_delete=models.CASCADE, null=True, blank=True, related_name="streams")
    node = models.ForeignKey("fleet.Node", on_delete=models.PROTECT, related_name="+")
    source = models.CharField(max_length=30)
    path = models.CharField(max_length=1000)
    offset = models.PositiveBigIntegerField(default=0, help_text="Bytes read, always at the end of a line.")
    last_seq = models.PositiveBigIntegerField(default=0)
    closed_at = models.DateTimeField(null=True, blank=True, help_text="The job has ended and all was read.")

    class Meta:
        indexes = [models.Index(fields=["closed_at"], condition=models.Q(closed_at=None), name="stream_open")]
        constraints = [models.UniqueConstraint(fields=["attempt", "source"], name="stream_once")]

    def __str__(self) -> str:
        return f"{self.attempt} {self.source} at {self.offset}"
