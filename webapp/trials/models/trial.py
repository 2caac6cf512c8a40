"""Prompts put to models of one run, on one node."""

from __future__ import annotations

from django.db import models
from django.urls import reverse

from webapp.runs.models import Attempt, NodeJob
from webapp.runs.states import JobStates


class TrialState(models.TextChoices):
    QUEUED = "queued"
    PREPARING = "preparing"
    RUNNING = "running"
    ANSWERED = "answered"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Trial(NodeJob):
    """Made by webapp.trials.actions alone; what is said is in its answers, a row for each model and prompt.

    `asked`: [{name, export (id, null: the base), folder}], and once a model answers also what the node said of it:
    state, device, why, dtype, bytes, seconds. `prompts`, `sampling`: as training.spec.answer has them. `beside`: a run
    holds the node, so it answers on the CPU, stands back, and leaves memory free.
    """

    KIND = "trial"
    STATES = JobStates(preparing=TrialState.PREPARING, done=TrialState.ANSWERED)

    kind = models.CharField(max_length=5, choices=[("ask", "asked by hand"), ("fixed", "the recipe's own prompts")])
    told_in = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="trials")
    state = models.CharField(max_length=10, choices=TrialState, default=TrialState.QUEUED, db_index=True)
    asked = models.JSONField()
    prompts = models.JSONField()
    sampling = models.JSONField()
    seconds = models.FloatField()
    beside = models.BooleanField(default=False)

    class Meta:
        ordering = ["-id"]
        constraints = [
            # The lock: two trials never answer on one node at once.
            models.UniqueConstraint(
                fields=["node"], condition=models.Q(state__in=["preparing", "running"]), name="trial_one_a_node"
            )
        ]

    def __str__(self) -> str:
        return f"trial {self.pk} of {self.told_in}"

    def get_absolute_url(self) -> str:
        return reverse("trials:trial", args=[self.told_in.run_id, self.pk])

    @property
    def attempt(self) -> Attempt:
        return self.told_in

    @property
    def is_active(self) -> bool:
        return self.state in (TrialState.PREPARING, TrialState.RUNNING)
