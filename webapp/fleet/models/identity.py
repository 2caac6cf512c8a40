"""An SSH identity: a key pair by which the service logs in to nodes."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from ..vault import seal, unseal


class Identity(models.Model):
    name = models.CharField(max_length=100, unique=True)
    public_key = models.TextField(editable=False)
    sealed_private_key = models.TextField(editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        verbose_name_plural = "identities"

    def __str__(self) -> str:
        return self.name

    @property
    def private_key(self) -> str:
        return unseal(self.sealed_private_key)

    @private_key.setter
    def private_key(self, value: str) -> None:
        self.sealed_private_key = seal(value)
