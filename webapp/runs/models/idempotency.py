"""A request that was already answered: the same key gives the same run, or the same export of it."""

from django.conf import settings
from django.db import models
from django.utils import timezone

from .export import Export
from .run import Run


class IdempotencyKey(models.Model):
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    key = models.CharField(max_length=200)
    body = models.CharField(max_length=64, help_text="SHA-256 of the request.")
    run = models.ForeignKey(Run, on_delete=models.CASCADE)
    export = models.ForeignKey(Export, on_delete=models.CASCADE, null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "key"], name="idempotency_key_once")]

    def __str__(self) -> str:
        return self.key
