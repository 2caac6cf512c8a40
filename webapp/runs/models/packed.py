"""Lines and points that lie together in one row (see packing): a row each would be thousands a second."""

from __future__ import annotations

from django.db import models

from .attempt import Attempt
from .run import Run
from .series import Series


class SampleBlock(models.Model):
    """Lines of one source, one after another, that were events before: the journal reads them from here.

    `first` and `last` are their numbers in the run's journal, between which other sources have theirs.
    """

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="sample_blocks", db_index=False)
    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="sample_blocks", db_index=False)
    source = models.CharField(max_length=30)
    first = models.PositiveBigIntegerField()
    last = models.PositiveBigIntegerField()
    count = models.PositiveIntegerField()
    body = models.BinaryField()

    class Meta:
        ordering = ["run", "first"]
        constraints = [models.UniqueConstraint(fields=["run", "first"], name="sample_block_once")]
        indexes = [
            models.Index(fields=["run", "last"], name="sample_block_past"),
            models.Index(fields=["attempt", "source", "last"], name="sample_block_of_source"),
        ]

    def __str__(self) -> str:
        return f"{self.attempt} {self.source} #{self.first} to #{self.last}"


class Chunk(models.Model):
    """`count` points of a series from x = `first` to `last`, by rising x. Chunks of one series may overlap.

    Level 0 has all points; each level above has those of the level below that are seen from further off (see levels).
    What is `loose` is not in the level above yet.
    """

    series = models.ForeignKey(Series, on_delete=models.CASCADE, related_name="chunks", db_index=False)
    level = models.PositiveSmallIntegerField(default=0)
    loose = models.BooleanField(default=True)
    first = models.FloatField()
    last = models.FloatField()
    count = models.PositiveIntegerField()
    body = models.BinaryField()

    class Meta:
        indexes = [
            # all that a level is chosen by, so that no body is touched
            models.Index(fields=["series", "level", "last", "first", "count"], name="chunk_of_series"),
            models.Index(fields=["series", "level"], condition=models.Q(loose=True), name="chunk_loose"),
        ]

    def __str__(self) -> str:
        return f"{self.series} level {self.level} from {self.first} to {self.last}"
