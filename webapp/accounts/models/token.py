"""An API token: shown once, kept as a digest."""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime

from django.conf import settings
from django.db import models
from django.utils import timezone

PREFIX = "sb_"


class Scope(models.TextChoices):
    READ = "read", "read"
    WRITE = "write", "read and write"


class Token(models.Model):
    """Stands for its user in the API, within its scope, until it expires or is revoked."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=100)
    scope = models.CharField(max_length=10, choices=Scope, default=Scope.WRITE)
    digest = models.CharField(max_length=64, unique=True, editable=False)
    hint = models.CharField(max_length=12, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.name} ({self.hint}…)"

    @classmethod
    def issue(cls, user, name: str, scope: str = Scope.WRITE, expires_at: datetime | None = None) -> tuple[Token, str]:
        """Return the new token and its secret, which is not kept."""
        secret = PREFIX + secrets.token_urlsafe(32)
        token = cls.objects.create(
            user=user, name=name, scope=scope, digest=digest(secret), hint=secret[:7], expires_at=expires_at
        )
        return token, secret

    @classmethod
    def find(cls, secret: str) -> Token | None:
        """Return the live token for `secret`, of a user who may still log in."""
        token = cls.objects.select_related("user").filter(digest=digest(secret)).first()
        return token if token and token.is_live() else None

    def is_live(self) -> bool:
        expired = self.expires_at is not None and self.expires_at <= timezone.now()
        return self.user.is_active and self.revoked_at is None and not expired


def digest(secret: str) -> str:
    """SHA-256 suffices: the secret is 256 random bits, so there is nothing to guess slowly."""
    return hashlib.sha256(secret.encode()).hexdigest()
