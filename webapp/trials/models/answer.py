"""What one model says to one prompt."""

from __future__ import annotations

from django.db import models

from webapp.runs.models import Export

from .trial import Trial


class Answer(models.Model):
    """`model`, `prompt`: which of its trial's, by index. `text` grows while `stopped_by` is empty."""

    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="answers")
    model = models.PositiveSmallIntegerField()
    prompt = models.PositiveSmallIntegerField()
    export = models.ForeignKey(
        Export, on_delete=models.CASCADE, null=True, blank=True, related_name="answers", help_text="Null: the base."
    )
    text = models.TextField(blank=True)
    tokens = models.PositiveIntegerField(default=0)
    seconds = models.FloatField(null=True, blank=True)
    tokens_per_second = models.FloatField(null=True, blank=True)
    first_token_seconds = models.FloatField(null=True, blank=True)
    stopped_by = models.CharField(max_length=10, blank=True, help_text="eos, tokens, time or stop; empty: not ended.")

    class Meta:
        ordering = ["trial", "prompt", "model"]
        constraints = [models.UniqueConstraint(fields=["trial", "model", "prompt"], name="answer_once")]

    def __str__(self) -> str:
        return f"{self.trial}: model {self.model}, prompt {self.prompt}"
