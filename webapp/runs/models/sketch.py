"""A run's loss in small: where it stands, and a curve of a few dozen points. Lists sort and draw by it."""

from __future__ import annotations

from django.db import models

from .run import Run


class Sketch(models.Model):
    """Kept by webapp.runs.sketches as lines come in: reading a long series for a list of runs would be slow.

    `attempt`: number of the newest attempt that has a loss; `step`, `last`: its last one. `last` is null where that
    is not finite; `odd` then says which. `curve`: [step, loss or its name] by rising step, each of another stretch of
    `stride` steps; an attempt that went on from a checkpoint replaces what an earlier one trained past it.
    """

    run = models.OneToOneField(Run, on_delete=models.CASCADE, primary_key=True, related_name="sketch")
    attempt = models.PositiveIntegerField()
    step = models.FloatField()
    last = models.FloatField(null=True)
    odd = models.CharField(max_length=9, blank=True)
    stride = models.PositiveBigIntegerField(default=1)
    curve = models.JSONField(default=list)

    class Meta:
        indexes = [models.Index(fields=["run", "last"], name="sketch_by_loss")]  # sorting looks at every run

    def __str__(self) -> str:
        return f"{self.run}: {self.shown}"

    @property
    def shown(self) -> float | str | None:
        """The last loss as JSON can carry it."""
        return self.odd or self.last
