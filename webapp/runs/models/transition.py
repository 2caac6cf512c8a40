"""A change of a run's state, with cause and actor."""

from django.db import models
from django.utils import timezone

from .attempt import Attempt
from .run import Run


class Transition(models.Model):
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="transitions")
    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, null=True, blank=True)
    old = models.CharField(max_length=12)
    new = models.CharField(max_length=12)
    at = models.DateTimeField(default=timezone.now)
    actor = models.CharField(max_length=150, help_text="A user's name, or the part of the service.")
    cause = models.TextField()

    class Meta:
        ordering = ["run", "id"]

    def __str__(self) -> str:
        return f"run {self.run_id}: {self.old} -> {self.new}"
