"""What people, and the service, did to a node."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from .node import Node


class NodeChange(models.Model):
    """One sentence, with who did it; written by webapp.fleet.changes in the transaction of the change itself."""

    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="changes")
    at = models.DateTimeField(default=timezone.now)
    actor = models.CharField(max_length=150)
    text = models.TextField()

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.node}: {self.text}"
