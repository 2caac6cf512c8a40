"""Nodes that can train together."""

from django.db import models


class Cluster(models.Model):
    name = models.SlugField(max_length=50, unique=True)
    notes = models.TextField(blank=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
