"""Where a base model comes from."""

from django.core.validators import RegexValidator
from django.db import models

location = RegexValidator(
    r"^(/[^\0\n]+|[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9._-]+)$",
    "Give an absolute folder on the nodes, or a hub id such as meta-llama/Llama-2-70b-chat-hf.",
)


class ModelSource(models.Model):
    """A folder that every node can read, or a hub id with its revision."""

    name = models.CharField(max_length=100, unique=True)
    location = models.CharField(max_length=500, validators=[location])
    revision = models.CharField(max_length=100, blank=True, help_text="Commit of a hub id; empty for a folder.")

    class Meta:
        ordering = ["name"]
        verbose_name = "model"

    def __str__(self) -> str:
        return self.name
