"""One immutable version of a data set, named by the hash of its content."""

from __future__ import annotations

import json
from pathlib import Path

from django.conf import settings
from django.db import models
from django.utils import timezone

from training.spec.lint import Problem, Refused

from .dataset import Dataset


class Version(models.Model):
    """`digest` names the folder DATASETS_DIR/<digest>/ with train.jsonl and, where there is one, test.jsonl."""

    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    digest = models.CharField(max_length=64, db_index=True)
    format = models.CharField(max_length=20, default="messages", help_text="messages, prompt-completion or text")
    rows = models.PositiveIntegerField()
    test_rows = models.PositiveIntegerField(default=0)
    bytes = models.PositiveBigIntegerField()
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["dataset", "-number"]
        constraints = [models.UniqueConstraint(fields=["dataset", "number"], name="version_number_once")]

    def __str__(self) -> str:
        return f"{self.dataset} v{self.number}"

    @property
    def text_field(self) -> str:
        """The column that holds the text: the only one that was kept. Raises Refused where the file has gone."""
        try:
            with (self.folder / "train.jsonl").open("rb") as file:
                return str(next(iter(json.loads(file.readline()))))
        except OSError as error:
            why = f"its file can't be read: {error.strerror}"
            raise Refused([Problem("dataset", why, "Upload it again.")]) from None

    @property
    def folder(self) -> Path:
        return Path(settings.DATASETS_DIR) / self.digest
