"""Who holds a node. The unique row is the lock: two runs never hold one node."""

from django.db import models
from django.utils import timezone

from .node import Node


class Claim(models.Model):
    node = models.OneToOneField(Node, on_delete=models.CASCADE, related_name="claim")
    attempt = models.ForeignKey("runs.Attempt", on_delete=models.CASCADE, related_name="claims")
    since = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"{self.node} held by {self.attempt}"
