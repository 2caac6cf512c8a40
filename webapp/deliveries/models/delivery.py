"""One export on its way to one place."""

from __future__ import annotations

from django.db import models

from webapp.runs.models import Attempt, Export, NodeJob
from webapp.runs.states import JobStates

from .destination import Destination

DELIVERY_STATES = JobStates(preparing="preparing", done="done")


class DeliveryState(models.TextChoices):
    QUEUED = DELIVERY_STATES.queued
    PREPARING = DELIVERY_STATES.preparing
    RUNNING = DELIVERY_STATES.running
    DONE = DELIVERY_STATES.done
    FAILED = DELIVERY_STATES.failed
    CANCELLED = DELIVERY_STATES.cancelled


class Delivery(NodeJob):
    """Runs as a job on the node that holds the export; to another node the worker carries it, file by file.

    `target`: where to, as it was when asked for, without a secret. `place`: the same in words. `carried`: what the
    worker has done of a delivery to `to_node`. `result`: data of the `delivered` line (training.spec.events).
    """

    KIND = "delivery"
    STATES = DELIVERY_STATES

    export = models.ForeignKey(Export, on_delete=models.CASCADE, related_name="deliveries")
    destination = models.ForeignKey(
        Destination, on_delete=models.SET_NULL, null=True, blank=True, related_name="deliveries"
    )
    to_node = models.ForeignKey("fleet.Node", on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    target = models.JSONField()
    place = models.CharField(max_length=1000)
    replace = models.BooleanField(default=False, help_text="Other content in that place may go.")
    state = models.CharField(max_length=10, choices=DeliveryState, default=DeliveryState.QUEUED, db_index=True)
    carried = models.JSONField(default=dict, editable=False)
    result = models.JSONField(default=dict)

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "deliveries"

    def __str__(self) -> str:
        return f"delivery {self.pk} of export {self.export_id}"

    @property
    def attempt(self) -> Attempt:
        return self.export.attempt

    @property
    def link(self) -> str:
        """Where the result can be looked at; empty unless that is a page of the web."""
        url = str(self.result.get("url", ""))
        return url if url.startswith(("https://", "http://")) else ""
