"""What a person asked for."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models
from django.urls import reverse
from django.utils import timezone

from training.spec.faults import Reason
from training.spec.recipe import Recipe

from ..queue.wish import Wish
from ..states import ENDED, RESUMABLE, STOPPABLE, RunState

if TYPE_CHECKING:
    from .attempt import Attempt


class Run(models.Model):
    """Changed through webapp.runs.actions and webapp.runs.lifecycle alone.

    `journal` is the number of its newest event: the cursor that browsers and the API count in. It is raised
    under this row's lock, so events become visible in the order of their numbers, without gaps.
    """

    name = models.CharField(max_length=200)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="runs")
    preset = models.CharField(max_length=100)
    recipe = models.JSONField(help_text="The whole recipe, defaults included.")
    model = models.ForeignKey("runs.ModelSource", on_delete=models.PROTECT, related_name="runs")
    dataset = models.ForeignKey("datasets.Version", on_delete=models.PROTECT, related_name="runs")
    cluster = models.ForeignKey("fleet.Cluster", on_delete=models.PROTECT, related_name="runs")
    wish = models.JSONField(default=dict, blank=True, help_text="Nodes and GPUs it asks for; {}: all of the cluster.")
    priority = models.SmallIntegerField(default=0, help_text="Its place in the queue: 100 comes first, -100 last.")
    cloned_from = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, blank=True)
    notes = models.TextField(blank=True, help_text="What is to be known of it, as plain text.")
    archived_at = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="Since when lists leave it out."
    )
    archived_by = models.CharField(max_length=150, blank=True, editable=False)

    state = models.CharField(max_length=12, choices=RunState, default=RunState.DRAFT, db_index=True)
    reason = models.CharField(max_length=30, blank=True, choices=[(r.value, r.value) for r in Reason])
    reason_text = models.TextField(blank=True, help_text="The reason in one sentence, with node and rank.")
    journal = models.PositiveBigIntegerField(default=0, editable=False)
    step = models.PositiveIntegerField(default=0)
    total_steps = models.PositiveIntegerField(default=0)

    created_at = models.DateTimeField(default=timezone.now, editable=False)
    started_at = models.DateTimeField(null=True, blank=True, editable=False)
    ended_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        ordering = ["-id"]
        # Lists look at every run: in here they find all that they filter and sort by without the wide rows, which hold
        # a recipe each (SQLite, 10,000 runs: see docs/decisions/0035-lists.md).
        indexes = [
            models.Index(
                fields=[
                    "archived_at",
                    "state",
                    "ended_at",
                    "id",
                    "owner",
                    "model",
                    "dataset",
                    "step",
                    "created_at",
                    "name",
                ],
                name="run_listed",
            )
        ]

    def __str__(self) -> str:
        return f"run {self.pk} {self.name}"

    def get_absolute_url(self) -> str:
        return reverse("runs:detail", args=[self.pk])

    @property
    def attempt(self) -> Attempt | None:
        """The newest attempt."""
        return self.attempts.order_by("-number").first()

    def parsed_recipe(self) -> Recipe:
        return Recipe.model_validate(self.recipe)

    def wished(self) -> Wish:
        return Wish.of(self.wish)

    @property
    def has_ended(self) -> bool:
        return self.state in ENDED

    @property
    def took(self) -> timedelta | None:
        """From the first step of its first attempt to its end; None while either is missing."""
        return self.ended_at - self.started_at if self.ended_at and self.started_at else None

    @property
    def can_stop(self) -> bool:
        return self.state in STOPPABLE

    @property
    def can_archive(self) -> bool:
        return self.has_ended and self.archived_at is None

    @property
    def can_resume(self) -> bool:
        return self.state in RESUMABLE
