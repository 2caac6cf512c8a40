"""An SSH identity: how the service proves itself to nodes."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from .. import lines
from ..vault import seal, unseal


class Identity(models.Model):
    """A key pair, its private half sealed; or one key of an SSH agent, of which only the public half is known here."""

    class Kind(models.TextChoices):
        MADE = "made", "made here"
        PASTED = "pasted", "pasted in"
        AGENT = "agent", "held by the SSH agent"

    name = models.CharField(max_length=100, unique=True)
    kind = models.CharField(max_length=6, choices=Kind, default=Kind.MADE, editable=False)
    public_key = models.TextField(editable=False)
    sealed_private_key = models.TextField(blank=True, editable=False, help_text="Empty where an agent holds it.")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        verbose_name_plural = "identities"

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        """Raise ValidationError where the name, which ends the line for authorized_keys, would make it two."""
        lines.check_fields({"name": self.name})

    @property
    def private_key(self) -> str:
        """The private half in OpenSSH's format; empty where an agent holds it."""
        return unseal(self.sealed_private_key) if self.sealed_private_key else ""

    @private_key.setter
    def private_key(self, value: str) -> None:
        self.sealed_private_key = seal(value)
