"""A word that people put on a run, to find it by."""

from __future__ import annotations

from django.db import models

from .run import Run


class Tag(models.Model):
    """Written through webapp.runs.actions alone, which says what a tag may be."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="tags", db_index=False)
    name = models.CharField(max_length=40)

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["run", "name"], name="tag_once")]
        indexes = [models.Index(fields=["name", "run"], name="tag_of_runs")]

    def __str__(self) -> str:
        return self.name

    @staticmethod
    def kept(name: str) -> str:
        """Return `name` as it is kept: in small letters, single spaces."""
        return " ".join(name.split()).casefold()
