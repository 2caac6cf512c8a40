"""What one check says of one node."""

from __future__ import annotations

from django.db import models

from webapp.fleet.models import Node

from .preflight import Preflight


class State(models.TextChoices):
    WAITING = "waiting"
    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"
    NOTHING = "nothing", "not applicable"


class Cell(models.Model):
    """`text`: what was found, or why there is nothing to find. `field`, `fix`: where to mend it, and how."""

    preflight = models.ForeignKey(Preflight, on_delete=models.CASCADE, related_name="cells")
    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="cells")
    check_name = models.CharField(max_length=20, help_text="Which of webapp.preflights.checks.")
    state = models.CharField(max_length=8, choices=State, default=State.WAITING)
    text = models.TextField(blank=True)
    field = models.CharField(max_length=50, blank=True)
    fix = models.TextField(blank=True)
    at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["preflight", "id"]
        constraints = [models.UniqueConstraint(fields=["preflight", "node", "check_name"], name="cell_once")]

    def __str__(self) -> str:
        return f"{self.check_name} of {self.node}: {self.state}"
