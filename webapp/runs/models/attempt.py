"""One launch of a run. A resume is a new attempt."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from training.spec.faults import Reason

from .run import Run


class Attempt(models.Model):
    """`lease_*`: who advances it now, and until when. `due_at`: when the sweep shall look at it again."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="attempts")
    number = models.PositiveIntegerField()
    resume_from = models.ForeignKey(
        "runs.Checkpoint", on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    restart = models.PositiveSmallIntegerField(
        default=0, help_text="Which restart in a row this is, by the service itself; 0: a person asked for it."
    )
    not_before = models.DateTimeField(null=True, blank=True, help_text="A restart leaves its nodes in peace till then.")
    port = models.PositiveIntegerField(default=0, help_text="Rendezvous port on the first node; 0: not chosen yet.")
    release = models.CharField(max_length=64, blank=True, help_text="Hash of the training code on the nodes.")
    world_size = models.PositiveIntegerField(default=0, help_text="As rank 0 reported it.")
    facts = models.JSONField(default=dict, blank=True, help_text="What the `started` event said.")
    reason = models.CharField(max_length=30, blank=True, choices=[(r.value, r.value) for r in Reason])
    failure = models.JSONField(
        default=dict,
        blank=True,
        help_text="Where it failed first: {node, node_rank, rank (over all nodes, or null), at (our clock), dragged:"
        " [node ranks that only were drawn along]}.",
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    unreachable_since = models.DateTimeField(
        null=True, blank=True, help_text="When its launch first met a node that can't be reached, and none since could."
    )
    stop_requested_at = models.DateTimeField(null=True, blank=True)
    stop_now_at = models.DateTimeField(null=True, blank=True, help_text="Asked to end without waiting for a save.")
    lease_owner = models.CharField(max_length=64, blank=True, editable=False)
    lease_until = models.DateTimeField(null=True, blank=True, editable=False)
    due_at = models.DateTimeField(default=timezone.now, db_index=True, editable=False)

    class Meta:
        ordering = ["run", "number"]
        constraints = [models.UniqueConstraint(fields=["run", "number"], name="attempt_number_once")]

    def __str__(self) -> str:
        return f"run {self.run_id} attempt {self.number}"
