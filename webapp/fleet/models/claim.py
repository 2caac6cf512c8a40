"""Who holds a GPU of a node. The unique row is the lock: two runs never hold one GPU."""

from django.db import models
from django.utils import timezone

from .node import Node


class Claim(models.Model):
    """`gpu`: its index on the node, from 0; a node without GPUs counts its ranks so."""

    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="claims")
    gpu = models.PositiveSmallIntegerField(default=0)
    attempt = models.ForeignKey("runs.Attempt", on_delete=models.CASCADE, related_name="claims")
    since = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["node", "gpu"]
        constraints = [models.UniqueConstraint(fields=["node", "gpu"], name="gpu_held_once")]

    def __str__(self) -> str:
        return f"{self.node}:{self.gpu} held by {self.attempt}"
