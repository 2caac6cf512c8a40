"""One thing that the watch saw on one run."""

from __future__ import annotations

from datetime import datetime

from django.db import models
from django.utils import timezone

from webapp.runs.models import Attempt, Run

from ..kinds import ADVICE, GLYPHS, LABELS, Kind, label


class NoticeSet(models.QuerySet["Notice"]):
    def open(self) -> NoticeSet:
        return self.filter(ended_at=None)


class Notice(models.Model):
    """Made, renewed and ended by workers.notices alone; one that is open is there once for each (attempt, kind, key).

    `key`: which node, GPU or metric. `began_at`: since when it has been so, by the writer's clock; `noticed_at`: when
    it had been so for long enough. `figure`, `text`: as seen last. `with_run`: it ended because the attempt did.
    """

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="notices")
    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="notices")
    kind = models.CharField(max_length=20, choices=[(str(kind), LABELS[kind]) for kind in Kind])
    key = models.CharField(max_length=200)
    began_at = models.DateTimeField()
    noticed_at = models.DateTimeField(default=timezone.now)
    last_seen_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    with_run = models.BooleanField(default=False)
    figure = models.CharField(max_length=100, blank=True)
    text = models.TextField()

    objects = NoticeSet.as_manager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["attempt", "kind", "key"], condition=models.Q(ended_at=None), name="notice_open_once"
            )
        ]
        indexes = [models.Index(fields=["run", "ended_at"], name="notice_of_run")]

    def __str__(self) -> str:
        return f"{self.run}: {self.label}, {self.key}"

    @property
    def label(self) -> str:
        return label(self.kind)

    @property
    def glyph(self) -> str:
        return GLYPHS[Kind(self.kind)]

    @property
    def advice(self) -> str:
        return ADVICE[Kind(self.kind)]

    @property
    def lasted_from(self) -> datetime:
        """When it began, or was noticed where the writer's clock is ahead of ours."""
        return min(self.began_at, self.noticed_at)
