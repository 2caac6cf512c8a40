"""One export on its way to one place."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from django.db import models

from webapp.runs.models import Attempt, Export, NodeJob
from webapp.runs.states import JobStates

from .destination import Destination

DELIVERY_STATES = JobStates(preparing="preparing", done="done")


# The fields of a target that say where things lie; the others say how they come there.
PLACES = {"path": ("folder",), "s3": ("endpoint", "bucket", "prefix"), "hub": ("endpoint", "repo", "branch")}


def spot_of(target: Mapping[str, Any], node_id: int) -> str:
    """Return what two deliveries to the same place have in common. `node_id`: the node whose disk a folder is on."""
    kind = target["kind"]
    where = [kind, node_id if kind == "path" else None, *(target[name] for name in PLACES[kind])]
    return hashlib.sha256(json.dumps(where).encode()).hexdigest()


class DeliveryState(models.TextChoices):
    QUEUED = DELIVERY_STATES.queued
    PREPARING = DELIVERY_STATES.preparing
    RUNNING = DELIVERY_STATES.running
    DONE = DELIVERY_STATES.done
    FAILED = DELIVERY_STATES.failed
    CANCELLED = DELIVERY_STATES.cancelled


class Delivery(NodeJob):
    """Runs as a job on the node that holds the export; to another node the worker carries it, file by file.

    `target`: where to, as it was when asked for, without a secret. `place`: the same in words. `spot`: see `spot_of`.
    `carried`: what the worker has done of a delivery to `to_node`. `result`: data of the `delivered` line
    (training.spec.events).
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
    spot = models.CharField(max_length=64, blank=True, editable=False, help_text="Empty: of an older delivery.")
    replace = models.BooleanField(default=False, help_text="Other content in that place may go.")
    state = models.CharField(max_length=10, choices=DeliveryState, default=DeliveryState.QUEUED, db_index=True)
    carried = models.JSONField(default=dict, editable=False)
    result = models.JSONField(default=dict)

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "deliveries"
        constraints = [
            # The lock: two deliveries never write to one place at once.
            models.UniqueConstraint(
                fields=["spot"],
                condition=models.Q(state__in=["queued", "preparing", "running"]) & ~models.Q(spot=""),
                name="delivery_one_a_place",
            )
        ]

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
