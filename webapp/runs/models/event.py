"""One line that a node wrote, or one thing that the service did, numbered within its run."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from .attempt import Attempt
from .run import Run


class Event(models.Model):
    """Unique by (attempt, source, seq): reading twice changes nothing. `number` is the run's cursor.

    Sources: `train@<rank>`, `node@<rank>`, `log@<rank>` (seq: byte offset behind the text),
    `<kind>@<id>`, `<kind>node@<id>`, `<kind>log@<id>` and `<kind>state@<id>` of a job of one node (see sources),
    `service` (transitions), `service:<what>` (what it noticed), `bad:<source>` (seq: byte offset behind a broken line).
    """

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="events", db_index=False)
    number = models.PositiveBigIntegerField()
    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="events", db_index=False)
    source = models.CharField(max_length=30)
    seq = models.PositiveBigIntegerField()
    kind = models.CharField(max_length=30)
    at = models.DateTimeField(help_text="By the writer's clock.")
    received_at = models.DateTimeField(default=timezone.now)
    step = models.PositiveIntegerField(null=True)
    data = models.JSONField(default=dict)

    class Meta:
        ordering = ["run", "number"]
        constraints = [  # which begin with the foreign keys, so that these need no index of their own
            models.UniqueConstraint(fields=["attempt", "source", "seq"], name="event_once"),
            models.UniqueConstraint(fields=["run", "number"], name="event_number_once"),
        ]
        indexes = [models.Index(fields=["run", "kind", "number"], name="event_by_kind")]

    def __str__(self) -> str:
        return f"{self.run_id}#{self.number} {self.kind}"
