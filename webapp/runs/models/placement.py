"""An attempt on one node."""

from __future__ import annotations

from django.db import models

from training.spec.plan import NodeSlot

from .attempt import Attempt


class Placement(models.Model):
    """`slot` is the node as it was at launch; a node edited later doesn't change what runs."""

    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="placements")
    node = models.ForeignKey("fleet.Node", on_delete=models.PROTECT, related_name="placements")
    rank = models.PositiveSmallIntegerField()
    slot = models.JSONField()
    facts = models.JSONField(default=dict, blank=True, help_text="Of its launch: {check, command, variables}.")
    prepared_at = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    exit = models.JSONField(null=True, blank=True, help_text="What exit.json said.")
    unreachable_since = models.DateTimeField(null=True, blank=True)
    stop_told_at = models.DateTimeField(null=True, blank=True, help_text="The node took note of a request to stop.")
    proof = models.JSONField(null=True, blank=True, help_text="What the node said last of what is left: runs.proof.")
    proven_gone_at = models.DateTimeField(null=True, blank=True, help_text="Nothing of the attempt is left.")

    class Meta:
        ordering = ["attempt", "rank"]
        constraints = [models.UniqueConstraint(fields=["attempt", "rank"], name="placement_rank_once")]

    def __str__(self) -> str:
        return f"{self.attempt} on {self.node}"

    def node_slot(self) -> NodeSlot:
        return NodeSlot(**self.slot)
